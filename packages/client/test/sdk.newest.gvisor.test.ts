import { describe, expect, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { Sandbox } from "../src/index.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of the SDK on gVisor are skipped: ${missing}`);

async function create(server: ServerProcess): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ url: server.url.replace("ws", "http") });
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  return sandbox;
}

describe.skipIf(missing !== undefined)("the SDK on gVisor", () => {
  test("commands, stdin, files and a terminal work with a real shell", async () => {
    const server = await ServerProcess.start({ store: await temporaryFolder() });
    const sandbox = await create(server);
    expect(await sandbox.exec("echo out; echo err >&2; exit 3")).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      exitCode: 3,
    });
    const large = "0123456789".repeat(300_000);
    expect(await sandbox.exec(["wc", "-c"], { stdin: large })).toMatchObject({ stdout: "3000000\n" });
    expect(await sandbox.exec(["cat"], { stdin: large })).toMatchObject({ stdout: large });
    await sandbox.files.write("/tmp/folder/file", "text");
    expect(await sandbox.exec("cat /tmp/folder/file")).toMatchObject({ stdout: "text" });
    const terminal = await sandbox.pty({ rows: 31, columns: 99 });
    await terminal.write("stty size; tty && echo is a tty\n");
    await terminal.write("exit 5\n");
    const { stdout, exitCode } = await terminal.collect();
    expect(stdout).toContain("31 99");
    expect(stdout).toContain("is a tty");
    expect(exitCode).toBe(5);
  });

  test("a handoff in the middle neither loses nor repeats bytes", async () => {
    const store = await temporaryFolder();
    const [from, to] = [await ServerProcess.start({ store }), await ServerProcess.start({ store })];
    const sandbox = await create(from);
    const process = await sandbox.spawn("for i in $(seq 1 100); do echo tick $i; sleep 0.01; done; exit 7");
    let text = "";
    let moved: Promise<unknown> | undefined;
    for await (const { data, offset } of process.chunks()) {
      text += new TextDecoder().decode(data);
      expect(text).toHaveLength(offset);
      if (offset > 200) moved ??= sandbox.handoff(to.url.replace("ws", "http"));
    }
    await moved;
    expect(text).toBe(Array.from({ length: 100 }, (_, index) => `tick ${index + 1}\n`).join(""));
    expect(await process.info()).toMatchObject({ exitCode: 7 });
  });
});
