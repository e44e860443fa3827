import { spawnSync } from "node:child_process";
import { SandboxerError, type CellAnswer, type CellLine, type ContextRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { withHostInterpreters } from "../../../../../test/kit/server/host-interpreters.ts";
import { startTestServer, type TestServerOptions } from "../../../../../test/kit/server/test-server.ts";
import { lines as linesOf, SandboxClient } from "./processes/support.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;
/** For a machine that has other things to do: alone it takes seconds. */
const BUSY_MS = 10 * 60_000;

class Notebook extends SandboxClient {
  async run(code: string, more: object = {}): Promise<CellAnswer> {
    const answer = await this.call<CellAnswer>("POST", "/cells", { code, ...more });
    if (answer.status !== 200) throw new Error(`cells: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  open(body: object, signal?: AbortSignal): Promise<Response> {
    return fetch(`${this.url}/cells`, {
      method: "POST",
      headers: { accept: "application/x-ndjson", "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async lines(code: string, more: object = {}): Promise<CellLine[]> {
    return Array.fromAsync(cellLines(await this.open({ code, ...more })));
  }

  async contexts(): Promise<ContextRecord[]> {
    return (await this.call<{ items: ContextRecord[] }>("GET", "/contexts")).body.items;
  }
}

function cellLines(response: Response): AsyncGenerator<CellLine> {
  return linesOf(response) as AsyncGenerator<never>;
}

async function notebook(options: TestServerOptions = {}, body: object = {}): Promise<Notebook> {
  const server = await startTestServer({ wrapBackend: withHostInterpreters, ...options });
  return new Notebook(server, (await SandboxClient.create(server, body)).id);
}

async function next(lines: AsyncGenerator<CellLine>, event: CellLine["event"]): Promise<CellLine> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`The stream ended without ${event}.`);
    if (value.event === event) return value;
  }
}

describe.skipIf(!hasPython)("a code interpreter", () => {
  test("variables persist between cells, and results, both streams and errors are separate", async () => {
    const box = await notebook();
    expect(await box.run("x = 20")).toMatchObject({
      status: "ok",
      results: [],
      execution_count: 1,
      context_id: "python",
    });
    const second = await box.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx + 1");
    expect(second).toMatchObject({ stdout: "out\n", stderr: "err\n", results: [{ main: true, text: "21" }] });
    const failed = await box.run("def f():\n  return x / 0\nf()");
    expect(failed).toMatchObject({
      status: "error",
      exception: { name: "ZeroDivisionError", value: "division by zero" },
    });
    expect(failed.exception?.traceback).toContain("return x / 0");
    expect((await box.run("x")).results).toEqual([{ main: true, text: "20" }]);
    expect((await box.run("import os; os.environ['A']", { env: { A: "1" } })).results[0]?.text).toBe("'1'");
    expect((await box.run("os.environ.get('A')")).results).toEqual([]);
    expect(await box.processes()).toEqual([]);
  });

  test("a stream has each line live, with the cell's identity and offsets", async () => {
    const box = await notebook();
    const lines = await box.lines("print('a')\ndisplay(2)\n3");
    expect(lines.map(({ event }) => event)).toEqual(["started", "stdout", "result", "result", "end"]);
    expect(lines[0]).toMatchObject({ context_id: "python", execution_count: 1, fresh: true });
    expect(lines[2]).toMatchObject({ result: { main: false, text: "2" } });
    expect(lines.at(-1)).toMatchObject({ status: "ok", timed_out: false, exit_code: null, signal: null });
    const again = await box.lines("1");
    expect(again[0]).toMatchObject({ execution_count: 2, fresh: false });
    const started = lines[0] as Extract<CellLine, { event: "started" }>;
    const path = `/contexts/python/cells/${started.cell_id}?offset=${started.offset}`;
    const repeated = await Array.fromAsync(cellLines(await fetch(box.url + path)));
    expect(repeated.map(({ event }) => event)).toEqual(["following", "stdout", "result", "result", "end"]);
    const unknown = `/contexts/python/cells/${crypto.randomUUID()}`;
    expect(await Array.fromAsync(cellLines(await fetch(box.url + unknown)))).toMatchObject([
      { event: "error", code: "context_not_found" },
    ]);
  });

  test("contexts are separate, and run in parallel", async () => {
    const box = await notebook();
    const made = await box.call<ContextRecord>("POST", "/contexts", { cwd: "/tmp" });
    expect([made.status, made.body]).toMatchObject([201, { language: "python", cwd: "/tmp", state: "idle" }]);
    const { id } = made.body;
    await box.run("x = 'default'");
    await box.run("import os\nx = os.getcwd()", { context_id: id });
    expect((await box.run("x", { context_id: id })).results[0]?.text).toBe("'/tmp'");
    const slow = cellLines(await box.open({ code: "import time\ntime.sleep(1000)", context_id: id }));
    await next(slow, "started");
    expect((await box.run("x")).results[0]?.text).toBe("'default'");
    expect((await box.contexts()).map(({ id: each, state }) => [each, state])).toEqual([
      [id, "busy"],
      ["python", "idle"],
    ]);
    expect((await box.call("POST", `/contexts/${id}/interrupt`)).status).toBe(204);
    expect(await next(slow, "exception")).toMatchObject({ name: "KeyboardInterrupt" });
    expect(await next(slow, "end")).toMatchObject({ status: "interrupted" });
    expect((await box.call<ContextRecord>("POST", `/contexts/${id}/restart`)).body).toMatchObject({ id, cwd: "/tmp" });
    expect((await box.run("x", { context_id: id })).exception).toMatchObject({ name: "NameError" });
    expect((await box.call("DELETE", `/contexts/${id}`)).status).toBe(204);
    const missing = await box.call("POST", "/cells", { code: "1", context_id: id });
    expect([missing.status, missing.body.error.code]).toEqual([404, "context_not_found"]);
    expect((await box.call("POST", "/cells", { code: "1", context_id: id, language: "python" })).status).toBe(400);
  });

  test("cells of one context run one after the other, in the order of the requests", async () => {
    const box = await notebook();
    await box.run("seen = []");
    await Promise.all([1, 2, 3].map((n) => box.run(`seen.append(${n})`)));
    expect((await box.run("sorted(seen)")).results[0]?.text).toBe("[1, 2, 3]");
  });

  test("a cell that kills its interpreter reports it, and the next cell gets a fresh one", async () => {
    const box = await notebook();
    const dead = await box.run(
      "print('last words', flush=True)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    );
    expect(dead).toMatchObject({ status: "died", signal: "SIGKILL" });
    expect(await box.contexts()).toMatchObject([{ id: "python", state: "exited" }]);
    expect((await box.run("1 + 1")).results).toEqual([{ main: true, text: "2" }]);
    const { body } = await box.call<ContextRecord>("POST", "/contexts");
    expect(await box.run("import os; os._exit(3)", { context_id: body.id })).toMatchObject({
      status: "died",
      exit_code: 3,
    });
    const after = await box.call("POST", "/cells", { code: "1", context_id: body.id });
    expect([after.status, after.body.error.code]).toEqual([409, "wrong_state"]);
    expect(after.body.error.hint).toContain("restart");
  });

  test.each([
    ["restarted", "POST", "/restart"],
    ["deleted", "DELETE", ""],
  ] as const)(
    "a context that is %s during a cell ends the cell, and those that wait for it",
    async (_, method, path) => {
      const box = await notebook();
      const { id } = (await box.call<ContextRecord>("POST", "/contexts")).body;
      const running = cellLines(await box.open({ code: "import time\ntime.sleep(1000)", context_id: id }));
      await next(running, "started");
      const waiting = box.run("1", { context_id: id });
      expect((await box.call(method, `/contexts/${id}${path}`)).status).toBeLessThan(300);
      expect(await next(running, "end")).toMatchObject({ status: "died", signal: "SIGKILL" });
      expect(await waiting).toMatchObject({ status: "died" });
    },
  );

  test("an endless cell is interrupted at its time limit", async () => {
    const box = await notebook();
    expect(await box.run("while True: pass", { timeout: 0.2 })).toMatchObject({
      status: "interrupted",
      timed_out: true,
    });
    expect((await box.run("1")).status).toBe("ok");
  });

  test("a cell whose client disconnects is interrupted, or kept", async () => {
    const box = await notebook();
    const leave = async (more: object): Promise<void> => {
      const gone = new AbortController();
      const code = "import time\nwhile True:\n  print('tick')\n  time.sleep(0.01)";
      await next(cellLines(await box.open({ code, ...more }, gone.signal)), "stdout");
      gone.abort();
    };
    await leave({});
    await eventually("the cell was interrupted", async () => (await box.contexts())[0]?.state === "idle");
    await leave({ on_disconnect: "keep" });
    expect(await box.contexts()).toMatchObject([{ state: "busy" }]);
    await box.call("POST", "/contexts/python/interrupt");
    await eventually("the kept cell ended", async () => (await box.contexts())[0]?.state === "idle");
  });

  test("output is cut at the limit of a collected response, and the cell still ends", async () => {
    const box = await notebook();
    const cut = await box.run("for i in range(3000): print('x' * 1000)", { max_output_bytes: 2000 });
    expect([cut.truncated, cut.stdout.length, cut.status]).toEqual([true, 2000, "ok"]);
    const big = await box.run("'y' * 300_000");
    expect(big.results[0]?.text).toHaveLength(300_002);
  });

  test(
    "a cell that prints a gigabyte costs neither the server's memory nor the interpreter",
    async () => {
      const box = await notebook();
      const before = process.memoryUsage().rss;
      const code = "line = 'x' * 1_048_575\nfor i in range(1024): print(line)";
      const printed = await box.run(code, { max_output_bytes: 2000 });
      expect([printed.truncated, printed.stdout.length, printed.status]).toEqual([true, 2000, "ok"]);
      expect(process.memoryUsage().rss - before).toBeLessThan(512 * 1024 * 1024);
      expect((await box.run("i")).results[0]?.text).toBe("1023");
    },
    BUSY_MS,
  );

  test("a paused sandbox keeps its variables and a running cell, which is followed from where it was", async () => {
    const box = await notebook();
    await box.run("x = 'kept'");
    const lines = cellLines(await box.open({ code: "import time\nprint('before')\nwhile True:\n  time.sleep(0.01)" }));
    const started = (await next(lines, "started")) as Extract<CellLine, { event: "started" }>;
    await next(lines, "stdout");
    const paused = box.call("POST", "/checkpoint", {});
    const moving = (await next(lines, "moving")) as Extract<CellLine, { event: "moving" }>;
    expect((await paused).status).toBe(200);
    expect((await box.call("POST", "/resume", {})).status).toBe(200);
    expect(await box.contexts()).toMatchObject([{ id: "python", state: "busy" }]);
    const path = `/contexts/python/cells/${started.cell_id}?offset=${moving.offset}`;
    const rest = cellLines(await fetch(box.url + path));
    await box.call("POST", "/contexts/python/interrupt");
    expect(await next(rest, "end")).toMatchObject({ status: "interrupted" });
    expect((await box.run("x")).results[0]?.text).toBe("'kept'");
  });

  test("a waiting interpreter does not keep its sandbox from being idle, a running cell does", async () => {
    const box = await notebook({}, { idle_timeout: "1h" });
    // Short only while nothing else runs: on a busy machine a second passes quickly.
    const pauseAfter = async (idle_timeout: number): Promise<void> =>
      expect((await box.call("PATCH", "", { idle_timeout })).status).toBe(200);
    const isPaused = async (): Promise<boolean> => (await box.http.get(box.id)).state === "stored";
    await box.run("1");
    await pauseAfter(1);
    await eventually("it is paused", isPaused);
    await pauseAfter(3600);
    await box.call("POST", "/resume", {});
    const gone = new AbortController();
    const open = await box.open({ code: "import time\ntime.sleep(2.5)", on_disconnect: "keep" }, gone.signal);
    await next(cellLines(open), "started");
    await pauseAfter(1);
    gone.abort();
    await eventually("its end is seen", isPaused);
    await pauseAfter(3600);
    await box.call("POST", "/resume", {});
    expect(await box.contexts()).toMatchObject([{ state: "idle" }]);
  });
});

test("a language that the server does not know is refused", async () => {
  const client = await SandboxClient.create(await startTestServer());
  const answer = await client.call("POST", "/cells", { code: "1", language: "cobol" });
  expect([answer.status, answer.body.error.code]).toEqual([400, "bad_request"]);
});

test("a sandbox without the language's program names an image that has it", async () => {
  const missing = (): Promise<never> => Promise.reject(new SandboxerError("file_not_found", "python3 was not found."));
  const server = await startTestServer();
  const client = await SandboxClient.create(server);
  (await server.live(client.id)).handle.exec = missing;
  const answer = await client.call("POST", "/cells", { code: "1" });
  expect([answer.status, answer.body.error.code]).toEqual([422, "not_supported"]);
  expect(answer.body.error.hint).toContain("Python 3.8");
});
