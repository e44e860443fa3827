import { spawnSync } from "node:child_process";
import { Sandbox } from "@e2b/code-interpreter";
import { describe, expect, test } from "vitest";
import { withHostInterpreters } from "../../../../../test/kit/server/host-interpreters.ts";
import { startForE2b } from "./sdk.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe.skipIf(!hasPython)("E2B's code interpreter client, unmodified", () => {
  test("runs code with lasting variables, results, errors and callbacks", async () => {
    await startForE2b({ wrapBackend: withHostInterpreters });
    const sandbox = await Sandbox.create();
    await sandbox.runCode("x = 20");
    const seen: string[] = [];
    const run = await sandbox.runCode("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx + 1", {
      onStdout: ({ line }) => void seen.push(line),
    });
    expect(run.text).toBe("21");
    expect(run.logs).toEqual({ stdout: ["out\n"], stderr: ["err\n"] });
    expect([run.executionCount, run.results[0]?.isMainResult, seen]).toEqual([2, true, ["out\n"]]);
    expect((await sandbox.runCode("'text'")).text).toBe("text");
    const failed = await sandbox.runCode("1 / 0");
    expect(failed.error).toMatchObject({ name: "ZeroDivisionError", value: "division by zero" });
    expect(failed.error?.traceback).toContain("1 / 0");
    expect((await sandbox.runCode("import os; os.environ['A']", { envs: { A: "1" } })).text).toBe("1");
    const rich = "class R:\n  def _repr_html_(self): return '<b>'\n  def _repr_png_(self): return b'p'\nR()";
    expect((await sandbox.runCode(rich)).results[0]).toMatchObject({ html: "<b>", png: "cA==" });
    expect((await sandbox.runCode("40 + 2", { language: "javascript" })).text).toBe("42");
    expect((await sandbox.runCode("echo $((40 + 2))", { language: "bash" })).logs.stdout).toEqual(["42\n"]);
  });

  test("has contexts, and a client that leaves interrupts its cell", async () => {
    await startForE2b({ wrapBackend: withHostInterpreters });
    const sandbox = await Sandbox.create();
    const context = await sandbox.createCodeContext({ cwd: "/tmp" });
    expect(context).toMatchObject({ language: "python", cwd: "/tmp" });
    await sandbox.runCode("x = 1", { context });
    expect((await sandbox.runCode("x")).error?.name).toBe("NameError");
    expect((await sandbox.listCodeContexts()).map(({ id }) => id)).toEqual([context.id, "python"]);
    await expect(sandbox.runCode("while True: pass", { context, timeoutMs: 1_000 })).rejects.toThrow();
    expect((await sandbox.runCode("x", { context })).text).toBe("1");
    // The next cell may already wait when the client leaves.
    const [left, next] = await Promise.allSettled([
      sandbox.runCode("while True: pass", { context, timeoutMs: 1_000 }),
      sandbox.runCode("x", { context }),
    ]);
    expect([left.status, next]).toMatchObject(["rejected", { value: { text: "1" } }]);
    await sandbox.restartCodeContext(context);
    expect((await sandbox.runCode("x", { context })).error?.name).toBe("NameError");
    await sandbox.removeCodeContext(context);
    await expect(sandbox.runCode("x", { context })).rejects.toThrow();
    await expect(sandbox.runCode("x", { language: "cobol" as never })).rejects.toThrow();
  });
});

test("contexts and cells need the sandbox's own traffic token", async () => {
  const { httpUrl } = await startForE2b();
  const [mine, other] = [await Sandbox.create(), await Sandbox.create()];
  for (const token of [undefined, "", "wrong", other.trafficAccessToken]) {
    const headers = { "e2b-sandbox-id": mine.sandboxId, "e2b-sandbox-port": "49999" };
    const shown = token === undefined ? headers : { ...headers, "e2b-traffic-access-token": token };
    for (const [method, path] of [
      ["GET", "/contexts"],
      ["POST", "/contexts"],
      ["POST", "/contexts/python/restart"],
      ["POST", "/execute"],
      ["DELETE", "/contexts/python"],
    ] as const) {
      const body = method === "POST" ? { body: '{"code":"1"}' } : {};
      expect((await fetch(`${httpUrl}/e2b${path}`, { method, headers: shown, ...body })).status).toBe(401);
    }
  }
});
