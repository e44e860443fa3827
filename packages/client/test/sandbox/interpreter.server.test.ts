import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { describe, expect, test } from "vitest";
import { withHostInterpreters } from "../../../../test/kit/server/host-interpreters.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { Sandbox, type CellEvent, type CellStatus } from "../../src/index.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe.skipIf(!hasPython)("sandbox.interpreter()", () => {
  test("runs cells with lasting variables, events, and contexts of their own", async () => {
    const { httpUrl: url } = await startTestServer({ wrapBackend: withHostInterpreters });
    const sandbox = await Sandbox.create({ url });
    const python = sandbox.interpreter();
    const events: string[] = [];
    await python.run("x = 6");
    const run = await python.run("print('hi')\nx * 7", { onEvent: ({ type }) => events.push(type), env: { A: "b" } });
    expect(run).toMatchObject({
      status: "ok",
      text: "42",
      stdout: "hi\n",
      stderr: "",
      executionCount: 2,
      contextId: "python",
    });
    expect(events).toEqual(["started", "stdout", "result", "end"]);
    const failed = await python.run("x / 0");
    expect([failed.status, failed.error?.name, failed.text]).toEqual(["error", "ZeroDivisionError", undefined]);

    const { id } = await python.createContext({ cwd: "/tmp" });
    const other = sandbox.interpreter({ context: id });
    expect((await other.run("x")).error?.name).toBe("NameError");
    expect((await python.contexts()).map((context) => [context.id, context.cwd])).toEqual([
      ["python", null],
      [id, "/tmp"],
    ]);
    expect((await python.restart()).id).toBe("python");
    expect((await python.run("x")).error?.name).toBe("NameError");
    await other.deleteContext();
    await expect(other.run("1")).rejects.toMatchObject({ code: "context_not_found" });
  });

  test("a cell is followed when its sandbox is paused in the middle of it, and an interrupt ends it", async () => {
    const { httpUrl: url } = await startTestServer({ wrapBackend: withHostInterpreters });
    const sandbox = await Sandbox.create({ url });
    const python = sandbox.interpreter();
    const printed = Promise.withResolvers<void>();
    const onEvent = (event: CellEvent): void => {
      if (event.type === "stdout") printed.resolve();
    };
    const code = "import time\nprint('here')\nwhile True: time.sleep(0.01)";
    const run = python.run(code, { onEvent });
    await printed.promise;
    await sandbox.checkpoint();
    // The stream resumes the sandbox automatically.
    await expect.poll(async () => (await sandbox.refresh()).state).toBe("running");
    await expect.poll(async () => (await python.contexts())[0]?.state).toBe("busy");
    await python.interrupt();
    const { status, stdout }: { status: CellStatus; stdout: string } = await run;
    expect([status, stdout]).toEqual(["interrupted", "here\n"]);
  });

  test("the guide's example prints the shown output", async () => {
    const { httpUrl: url } = await startTestServer({ wrapBackend: withHostInterpreters });
    const guide = await readFile(new URL("../../../../docs/guides/code-interpreter.md", import.meta.url), "utf8");
    const [, code = ""] = /^```ts\n([\s\S]*?)^```$/m.exec(guide) ?? [];
    const body = stripTypeScriptTypes(code.replace(/^import .*$/m, ""));
    const printed: unknown[] = [];
    const AsyncFunction = (async () => {}).constructor as new (
      ...parts: string[]
    ) => (...given: unknown[]) => Promise<void>;
    const create = (): Promise<Sandbox> => Sandbox.create({ url });
    await new AsyncFunction("Sandbox", "console", body)({ create }, { log: (line: unknown) => printed.push(line) });
    expect(printed).toEqual([...code.matchAll(/; \/\/ (.*)$/gm)].map(([, text]) => text));
  });

  test("output beyond the limit is dropped, and reported as truncated", async () => {
    const { httpUrl: url } = await startTestServer({ wrapBackend: withHostInterpreters });
    const python = (await Sandbox.create({ url })).interpreter();
    const cut = await python.run("print('x' * 5000)\n'y' * 5000", { maxOutputBytes: 100 });
    expect([cut.truncated, cut.stdout.length, cut.results, cut.status]).toEqual([true, 100, [], "ok"]);
  });
});
