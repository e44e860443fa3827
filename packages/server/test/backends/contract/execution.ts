import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import {
  bash,
  countAbove,
  counter,
  errorCode,
  eventually,
  finish,
  node,
  python,
  readText,
  run,
  start,
} from "./programs.ts";

export function executionContract(context: ContractContext): void {
  test("bash, Python and JavaScript run, with their exit codes", async () => {
    const handle = await context.shared();
    const [shell, snake, script] = await Promise.all([
      run(handle, bash("echo out; echo err >&2; exit 3")),
      run(handle, python("import sys\nfor i in range(3):\n    print('n', i)\nsys.exit(4)")),
      run(handle, node('console.log("js", 1 + 1); console.error("warning"); process.exit(5)')),
    ]);
    expect(shell).toMatchObject({ stdout: "out\n", stderr: "err\n", exit: { code: 3, signal: undefined } });
    expect(snake).toMatchObject({ stdout: "n 0\nn 1\nn 2\n", stderr: "", exit: { code: 4, signal: undefined } });
    expect(script).toMatchObject({ stdout: "js 2\n", stderr: "warning\n", exit: { code: 5, signal: undefined } });
  });

  test("an error of the program is its exit code and its stderr", async () => {
    const handle = await context.shared();
    const raised = await run(handle, python("print('before')\nraise ValueError('boom')"));
    expect(raised).toMatchObject({ stdout: "before\n", exit: { code: 1, signal: undefined } });
    expect(raised.stderr).toContain("ValueError: boom");
    const missing = await run(handle, bash("no-such-command-here"));
    expect(missing.exit.code).toBe(127);
  });

  test("a missing program is an error, not a process", async () => {
    const handle = await context.shared();
    const before = (await handle.processes()).length;
    expect(await errorCode(start(handle, ["/no/such/program"]))).toBe("file_not_found");
    expect((await handle.processes()).length).toBe(before);
  });

  test("a signal from inside and one from outside end a process", async () => {
    const handle = await context.shared();
    const killed = await run(handle, bash("kill -9 $$"));
    expect(killed.exit).toMatchObject({ code: undefined, signal: 9 });
    const sleeping = await start(handle, bash("sleep 300"));
    expect(sleeping.exit).toBeUndefined();
    await sleeping.signal(15, "process");
    expect(await sleeping.exited).toMatchObject({ code: undefined, signal: 15 });
    expect(sleeping.exit).toMatchObject({ signal: 15 });
  });

  test("a signal to the group ends the children too", async () => {
    const handle = await context.shared();
    const process = await start(handle, bash("sleep 3111 & wait"));
    const family = async (): Promise<number> =>
      (await handle.processTable()).filter(({ command }) => command.includes("3111")).length;
    await eventually(async () => (await family()) === 2, "shell and child in the process table");
    await process.signal(9, "group");
    expect(await process.exited).toMatchObject({ signal: 9 });
    await eventually(async () => (await family()) === 0, "the end of both");
  });

  test("a background process outlives its parent, which ends without it", async () => {
    const handle = await context.shared();
    const path = `/workspace/${randomUUID()}`;
    const loop = `i=0; while true; do i=$((i+1)); echo "$i" > ${path}; sleep 0.05; done`;
    const parent = await run(handle, bash(`(${loop}) & echo $!`));
    expect(parent.exit.code).toBe(0);
    await countAbove(handle, path, await countAbove(handle, path, 0));
    await run(handle, bash(`kill -9 ${parent.stdout.trim()}`));
  });

  test("a known key returns its process and starts nothing", async () => {
    const handle = await context.shared();
    const key = randomUUID();
    const path = `/workspace/${key}`;
    const command = { key, argv: bash(`echo run >> ${path}; read x; echo "done $x"`) };
    const first = await handle.exec(command);
    const second = await handle.exec(command);
    expect(second.pid).toBe(first.pid);
    await first.writeStdin(Buffer.from("now\n"));
    expect((await finish(second)).stdout).toBe("done now\n");
    expect((await handle.exec(command)).pid).toBe(first.pid);
    expect(await readText(handle, path)).toBe("run\n");
  });

  test("environment and working folder are those of the sandbox, or the command's", async () => {
    const handle = await context.shared();
    const plain = await run(handle, bash('echo "$GREETING"; pwd'));
    expect(plain.stdout).toBe("grüß dich\n/workspace\n");
    const options = { env: { GREETING: "moin", OTHER: "a b" }, workingFolder: "/tmp" };
    expect((await run(handle, bash('echo "$GREETING $OTHER"; pwd'), options)).stdout).toBe("moin a b\n/tmp\n");
    expect(await errorCode(start(handle, bash("pwd"), { workingFolder: "/no/such/folder" }))).toBe("file_not_found");
  });

  test("the process table has every process, and only while it runs", async () => {
    const handle = await context.shared();
    const process = await start(handle, counter("/workspace/table"));
    const row = async () => (await handle.processTable()).find(({ pid }) => pid === process.pid);
    expect((await row())?.command).toContain("/workspace/table");
    await process.signal(9, "group");
    await process.exited;
    await eventually(async () => (await row()) === undefined, "the process gone from the table");
  });

  test("processes are listed oldest first until they are released", async () => {
    const handle = await context.shared();
    const [first, second] = [await start(handle, bash("echo 1")), await start(handle, bash("read x"))];
    const keys = async () =>
      (await handle.processes()).map(({ key }) => key).filter((key) => [first.key, second.key].includes(key));
    expect(await keys()).toEqual([first.key, second.key]);
    expect(await errorCode(second.release())).toBe("wrong_state");
    await first.exited;
    await first.release();
    expect(await keys()).toEqual([second.key]);
    await second.signal(9, "group");
    await second.exited;
  });
}
