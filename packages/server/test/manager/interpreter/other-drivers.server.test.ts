import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { DriverProcess, type RanCell } from "./driver-process.ts";

const hasBash = spawnSync("bash", ["--version"]).status === 0;

/** A cell that is interrupted once it prints. Repeated, as the server does, because node and bash may lose a signal. */
async function interrupted(driver: DriverProcess, code: string): Promise<RanCell> {
  let again: NodeJS.Timeout | undefined;
  try {
    return await driver.run(code, {
      onFrame: ({ f }) => {
        if (f !== "out" || again !== undefined) return;
        driver.interrupt();
        again = setInterval(() => driver.interrupt(), 200);
      },
    });
  } finally {
    clearInterval(again);
  }
}

describe("the JavaScript driver", () => {
  test("variables persist and may be declared again; results, errors and both streams are separate", async () => {
    const driver = await DriverProcess.start("javascript");
    expect(await driver.run("const x = 20; let y = 1\nfunction f() { return x + y }")).toMatchObject({
      status: "ok",
      results: [],
    });
    const second = await driver.run("console.log('out'); console.error('err')\nf()");
    expect(second).toMatchObject({ stdout: "out\n", stderr: "err\n", results: [{ text: "21" }] });
    expect((await driver.run("const x = 'let it be';\n`\nconst ${x}`")).results[0]?.text).toBe("'\\nconst let it be'");
    expect((await driver.run("({ a: [1, 2] })")).results).toEqual([{ text: "{ a: [ 1, 2 ] }", json: { a: [1, 2] } }]);
    const failed = await driver.run("function g() { null.x }\ng()");
    expect(failed).toMatchObject({ status: "error", error: { name: "TypeError" } });
    expect(failed.error?.traceback).toContain("at g (<cell");
    expect((await driver.run("if (")).error?.name).toBe("SyntaxError");
    expect((await driver.run("throw 5")).error).toMatchObject({ name: "Error", value: "5" });
    expect((await driver.run("process.env.A", { env: { A: "1" } })).results[0]?.text).toBe("'1'");
    expect((await driver.run("process.env.A")).results).toEqual([]);
  });

  test("cells await, require, and display in other formats", async () => {
    const driver = await DriverProcess.start("javascript", { cwd: await temporaryFolder() });
    expect((await driver.run("const v = await Promise.resolve(6)\nv * 7")).results[0]?.text).toBe("42");
    expect((await driver.run("v + require('node:path').sep")).results[0]?.text).toBe("'6/'");
    const shown = await driver.run(
      "display({ [Symbol.for('Jupyter.display')]: () => ({ 'text/html': '<b>', 'image/png': new Uint8Array([1]) }) });",
    );
    expect(shown.results).toEqual([{ html: "<b>", png: "AQ==" }]);
    expect((await driver.run("'z'.repeat(200000)")).results[0]?.text).toHaveLength(200_002);
  });

  test("an interrupt ends a loop and a wait", async () => {
    const driver = await DriverProcess.start("javascript");
    for (const code of ["while (true) {}", "await new Promise(() => setInterval(() => {}, 1000))"]) {
      const ended = await interrupted(driver, `console.log('go')\n${code}`);
      expect([code, ended.status, ended.error?.name]).toEqual([code, "interrupted", "KeyboardInterrupt"]);
    }
    expect((await driver.run("1 + 1")).results[0]?.text).toBe("2");
  });

  test.each([
    ["replaced globals", "console.log = JSON.stringify = Buffer.from = undefined"],
    [
      "a child with the same output",
      "require('child_process').execSync('echo child; echo e >&2', { stdio: 'inherit' }); 0",
    ],
    ["its own marks", "process.stdout.write('\\x1e\\x1e' + '0'.repeat(36) + '{\"f\":\"end\"}\\x1e')"],
    [
      "an error without a listener",
      "setTimeout(() => { throw new Error('late') }); await require('timers/promises').setImmediate()",
    ],
    ["a reader of stdin", "process.stdin.on('data', () => {}); 0"],
    ["megabytes", "for (let i = 0; i < 40; i++) console.log('x'.repeat(100000))"],
  ])("a cell cannot confuse the server with %s", async (_, code) => {
    const driver = await DriverProcess.start("javascript");
    expect((await driver.run(code)).status).toBe("ok");
    expect((await driver.run("6 * 7")).results[0]?.text).toBe("42");
  });

  test("TypeScript has its types removed", async () => {
    const driver = await DriverProcess.start("typescript");
    const ran = await driver.run("interface Box { n: number }\nconst box: Box = { n: 7 }\nbox.n as number");
    expect([ran.error, ran.results[0]?.text]).toEqual([undefined, "7"]);
  });
});

describe.skipIf(!hasBash)("the bash driver", () => {
  test("variables, functions and the folder persist; a failed command is an error", async () => {
    const driver = await DriverProcess.start("bash", { cwd: "/" });
    expect(await driver.run("x='a b'; f() { echo \"<$x>\"; }; cd /tmp")).toMatchObject({
      status: "ok",
      stdout: "",
      stderr: "",
    });
    expect(await driver.run("f\npwd; echo err >&2")).toMatchObject({
      stdout: "<a b>\n/tmp\n",
      stderr: "err\n",
      status: "ok",
    });
    expect(await driver.run("false")).toMatchObject({ status: "error", error: { name: "ExitStatus", value: "1" } });
    expect(await driver.run("if then")).toMatchObject({ status: "error" });
    expect(await driver.run("echo $A", { env: { A: 'it\'s\n"two" lines' } })).toMatchObject({
      stdout: 'it\'s "two" lines\n',
    });
    expect(await driver.run('echo "[$A]"; cat')).toMatchObject({ stdout: "[]\n" });
    expect(await driver.run("echo '!x' \"$((1+1))\" '\\n' grüße")).toMatchObject({ stdout: "!x 2 \\n grüße\n" });
    expect(await driver.run("exec >/dev/null; echo hidden")).toMatchObject({ status: "ok", stdout: "" });
    expect(await driver.run("echo to err >&2")).toMatchObject({ stderr: "to err\n" });
    expect((await driver.run("exit 3")).status).toBe(undefined);
  });

  test("an interrupt ends a program and a loop of its own", async () => {
    const driver = await DriverProcess.start("bash");
    for (const code of ["sleep 1000", "while :; do :; done", "for i in 1 2 3; do sleep 1000; done"]) {
      const ended = await interrupted(driver, `echo go; ${code}`);
      expect([code, ended.status]).toEqual([code, "interrupted"]);
    }
    expect(await driver.run("echo still here")).toMatchObject({ stdout: "still here\n" });
  });
});
