import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

describe("execute", () => {
  test.each([
    ["python", "import sys\nprint('a')\nprint('b', file=sys.stderr)\nsys.exit(3)", ["out:a\n", "err:b\n"], 3],
    ["bash", "echo a; echo b >&2; exit 3", ["out:a\n", "err:b\n"], 3],
    ["javascript", "console.log('a'); console.error('b'); process.exit(3)", ["out:a\n", "err:b\n"], 3],
  ])("%s: output and exit code", async (language, code, output, exitCode) => {
    const server = await startTestServer();
    const { client } = await server.create();
    expect(await client.run(language, code).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      ...output,
      "EXECUTION_DONE",
    ]);
    expect(client.events.at(-1)).toMatchObject({ exit_code: exitCode });
  });

  test("a program writes into the root folder", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const came = await client.run("bash", "echo hello > /test.txt; cat /test.txt").until("EXECUTION_DONE");
    expect(came).toEqual(["EXECUTION_RUNNING", "out:hello\n", "EXECUTION_DONE"]);
  });

  test("one after the other, each with its own id and offsets that count bytes", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    await client.run("bash", "printf 'äb'").until("EXECUTION_DONE");
    const first = await client.event("stdout");
    await client.run("bash", "printf x").until("EXECUTION_DONE");
    const second = await client.event("stdout");
    expect(first.offset).toBe(3);
    expect(second.offset).toBe(1);
    expect(second.execution_id).not.toBe(first.execution_id);
  });

  test("a character that is written in two halves arrives as one", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const came = await client.run("bash", "printf 'x\\xe2\\x82'; sleep 0.02; printf '\\xac'").until("EXECUTION_DONE");
    expect(came).toEqual(["EXECUTION_RUNNING", "out:x€", "EXECUTION_DONE"]);
    expect(client.events.map((event) => ("data" in event ? event.data : "")).join("|")).not.toContain("\ufffd");
  });

  test("bytes that are not text are replaced", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const came = await client.run("bash", "printf 'a\\xff\\xfeb\\xe2\\x82'").until("EXECUTION_DONE");
    expect(came).toEqual(["EXECUTION_RUNNING", "out:a\ufffd\ufffdb\ufffd", "EXECUTION_DONE"]);
    expect((await client.event("stdout")).offset).toBe(6);
  });

  test("code that the backend cannot start is an error, and the session continues", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const { SandboxerError } = await import("@sandboxer/protocol");
    server.backend.faults.set("exec", { error: new SandboxerError("limit_reached", "too many"), times: 1 });
    expect(await client.run("bash", "true").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_ERROR",
      "error:too many",
      "EXECUTION_DONE",
    ]);
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:on\n",
      "EXECUTION_DONE",
    ]);
  });

  test("its background processes keep running", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    await client
      .run("bash", "echo early > /tmp/file; (sleep 0.05; echo late > /tmp/file) > /dev/null 2>&1 &")
      .until("EXECUTION_DONE");
    const came = await client
      .run("bash", "while [ $(cat /tmp/file) = early ]; do sleep 0.01; done; cat /tmp/file")
      .until("EXECUTION_DONE");
    expect(came).toEqual(["EXECUTION_RUNNING", "out:late\n", "EXECUTION_DONE"]);
  });
});

describe("stdin", () => {
  test("reaches the execution", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    client.run("python", "print('hello ' + input())");
    await client.until("EXECUTION_RUNNING");
    client.send({ event: "stdin", data: "Wörld\n" });
    expect(await client.until("EXECUTION_DONE")).toEqual(["out:hello Wörld\n", "EXECUTION_DONE"]);
  });

  test("without data is refused first, whether something runs or not", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const refused = ["STDIN_ERROR", expect.stringMatching(/^error:./)];
    expect(await client.send({ event: "stdin" }).until("error")).toEqual(refused);
    expect(await client.send({ event: "stdin", data: 5 }).until("error")).toEqual(refused);
    await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
    expect(await client.send({ event: "stdin", data: null }).until("error")).toEqual(refused);
    expect(await client.send({ event: "stdin", data: "y\n" }).until("EXECUTION_DONE")).toEqual([
      "out:y\n",
      "EXECUTION_DONE",
    ]);
  });

  test("with nothing running", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    const came = await client.send({ event: "stdin", data: "x" }).until("error");
    expect(came).toEqual(["EXECUTION_ERROR", "error:No process is running in the sandbox."]);
    expect(await client.run("bash", "true").until("EXECUTION_DONE")).toEqual(["EXECUTION_RUNNING", "EXECUTION_DONE"]);
  });

  test("more input than a process reads is refused, and a kill still works", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    await client.run("bash", "sleep 60").until("EXECUTION_RUNNING");
    for (let sent = 0; sent < 8; sent += 1) client.send({ event: "stdin", data: "x".repeat(900_000) });
    expect(await client.until("error")).toEqual(["STDIN_ERROR", expect.stringContaining("does not read")]);
    const ended = await client.send({ action: "kill_process" }).until("EXECUTION_DONE");
    expect(ended.filter((word) => word !== "STDIN_ERROR" && !word.startsWith("error:"))).toEqual([
      "EXECUTION_FORCE_KILLED",
      "EXECUTION_DONE",
    ]);
  });
});

describe("kill_process", () => {
  test("ends the execution after its last output", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    client.run("bash", "echo before; sleep 60; echo never");
    await client.until("out:");
    expect(await client.send({ action: "kill_process" }).until("EXECUTION_DONE")).toEqual([
      "EXECUTION_FORCE_KILLED",
      "EXECUTION_DONE",
    ]);
    expect(client.events.at(-1)).toMatchObject({ exit_code: null });
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toEqual([
      "EXECUTION_RUNNING",
      "out:on\n",
      "EXECUTION_DONE",
    ]);
  });

  test("without an execution it is sent alone", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    client.send({ action: "kill_process" }).run("bash", "true");
    expect(await client.until("EXECUTION_DONE")).toEqual([
      "EXECUTION_FORCE_KILLED",
      "EXECUTION_RUNNING",
      "EXECUTION_DONE",
    ]);
  });
});
