import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { attach, create, SandboxerError, type Output } from "../../src/index.ts";
import { eventually } from "../../../../test/kit/eventually.ts";

const DURABLE = { enable_checkpoint: true };

test("a session is created, runs code, is saved, attached and deleted", async () => {
  const server = await startTestServer();
  const sandbox = await create(server.httpUrl, DURABLE);
  expect(sandbox.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(await sandbox.run("bash", "echo out; echo err >&2; echo kept > file; exit 3")).toMatchObject({
    stdout: "out\n",
    stderr: "err\n",
    exitCode: 3,
  });
  await sandbox.checkpoint();
  const again = await attach(server.httpUrl, sandbox.id, { token: sandbox.token ?? "" });
  expect(await again.run("bash", "cat file")).toMatchObject({ stdout: "kept\n", stderr: "", exitCode: 0 });
  await again.destroy();
  expect((await again.closed).code).toBe(1000);
  await expect(attach(server.httpUrl, sandbox.id)).rejects.toMatchObject({ code: "sandbox_not_found" });
});

test("output arrives piece by piece, and stdin is delivered", async () => {
  const server = await startTestServer();
  const sandbox = await create(server.url);
  const pieces: Output[] = [];
  const result = sandbox.run("bash", "echo ready; read x; echo got $x >&2", {
    onOutput: (output) => {
      pieces.push(output);
      if (output.data === "ready\n") sandbox.stdin("it\n");
    },
  });
  expect(await result).toMatchObject({ stdout: "ready\n", stderr: "got it\n", exitCode: 0 });
  expect(pieces.map(({ stream, data }) => [stream, data])).toEqual([
    ["stdout", "ready\n"],
    ["stderr", "got it\n"],
  ]);
  expect(pieces.at(-1)?.executionId).toBe((await result).executionId);
});

describe("killing", () => {
  test("by kill: the run ends without an exit code", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url);
    const running = sandbox.run("bash", "echo begun; sleep 60", { onOutput: () => void sandbox.kill() });
    expect(await running).toMatchObject({ stdout: "begun\n", exitCode: null });
  });

  test("by a signal: the run fails with its reason, and the sandbox keeps running", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url);
    const abort = new AbortController();
    const running = sandbox.run("bash", "echo begun; sleep 60", {
      signal: abort.signal,
      onOutput: () => abort.abort(new Error("enough")),
    });
    await expect(running).rejects.toThrow("enough");
    expect(await sandbox.run("bash", "echo on")).toMatchObject({ stdout: "on\n" });
  });
});

test("a client that reconnects gets the output after its offset", async () => {
  const server = await startTestServer({ store: null });
  const sandbox = await create(server.url);
  const seen: Output[] = [];
  const lost = sandbox.run("bash", "for i in $(seq 1 50); do echo $i; sleep 0.002; done; exit 7", {
    onOutput: (output) => seen.push(output),
  });
  await eventually("some output came", () => seen.length >= 3);
  void sandbox.close();
  await expect(lost).rejects.toMatchObject({ code: "backend_unavailable" });
  const last = seen.at(-1);
  const again = await attach(server.url, sandbox.id);
  const rest = await again.reconnect({ executionId: last?.executionId ?? "", offset: last?.offset ?? 0 });
  expect(seen.map(({ data }) => data).join("") + rest.stdout).toBe(
    Array.from({ length: 50 }, (_, index) => `${index + 1}\n`).join(""),
  );
  expect(rest.exitCode).toBe(7);
  expect(await again.reconnect()).toMatchObject({ stdout: "", exitCode: 7 });
});

test("new sandboxes can start from a filesystem snapshot", async () => {
  const server = await startTestServer();
  const sandbox = await create(server.url);
  await sandbox.run("bash", "echo shared > file");
  await sandbox.snapshotFilesystem("base");
  const other = await create(server.url, { filesystem_snapshot_name: "base" });
  expect(await other.run("bash", "cat file")).toMatchObject({ stdout: "shared\n" });
  await expect(sandbox.snapshotFilesystem("../x")).rejects.toMatchObject({
    code: "bad_request",
    details: { status: "SANDBOX_FILESYSTEM_SNAPSHOT_ERROR" },
  });
});

test("events arrive by callback and by iteration, in order and to the end", async () => {
  const server = await startTestServer();
  const sandbox = await create(server.url);
  const called: string[] = [];
  const stop = sandbox.onEvent((event) => called.push(event.event));
  const iterated: string[] = [];
  const iterating = (async () => {
    for await (const event of sandbox.events())
      iterated.push(event.event === "status_update" ? event.status : event.event);
  })();
  await sandbox.run("bash", "echo x");
  stop();
  await sandbox.destroy();
  await iterating;
  expect(called).toEqual(["status_update", "stdout", "status_update"]);
  expect(iterated.slice(0, 3)).toEqual(["SANDBOX_EXECUTION_RUNNING", "stdout", "SANDBOX_EXECUTION_DONE"]);
  expect(iterated.at(-1)).toBe("SANDBOX_KILLED");
});

describe("errors carry the server's code and hint", () => {
  test("a refused creation", async () => {
    const server = await startTestServer({ store: null });
    const refused = create(server.url, DURABLE);
    await expect(refused).rejects.toBeInstanceOf(SandboxerError);
    await expect(refused).rejects.toMatchObject({
      code: "checkpoint_disabled",
      message: "Checkpointing is not enabled on the server.",
      hint: expect.stringContaining("--store"),
    });
  });

  test("a refused attach", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url);
    await expect(attach(server.url, sandbox.id)).rejects.toMatchObject({ code: "sandbox_in_use" });
    await expect(attach(server.url, sandbox.id, { token: "wrong" })).rejects.toMatchObject({
      code: "permission_denied",
    });
    await expect(attach(server.url, "../../etc")).rejects.toMatchObject({ code: "sandbox_not_found" });
  });

  test("a second run is refused, and does not disturb the first", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url);
    const first = sandbox.run("bash", "read x; echo $x");
    await expect(sandbox.run("bash", "echo second")).rejects.toMatchObject({ code: "execution_in_progress" });
    sandbox.stdin("on\n");
    expect(await first).toMatchObject({ stdout: "on\n" });
  });

  test("a run is refused while an earlier one is in progress", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url);
    const events = sandbox.events();
    const abandoned = sandbox.run("bash", "read x; echo $x").catch((error: unknown) => error);
    await events.next();
    await sandbox.close();
    await abandoned;
    const again = await attach(server.url, sandbox.id);
    await expect(again.run("bash", "echo second")).rejects.toMatchObject({ code: "execution_in_progress" });
    const rest = again.reconnect();
    again.stdin("rest\n");
    expect(await rest).toMatchObject({ stdout: "rest\n", exitCode: 0 });
  });

  test("an unknown language is refused, and a valid one then works", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url);
    await expect(sandbox.run("cobol" as "bash", "x")).rejects.toMatchObject({ code: "bad_request" });
    expect(await sandbox.run("bash", "echo fine")).toMatchObject({ stdout: "fine\n" });
  });

  test("a checkpoint while executing is refused, and the execution continues", async () => {
    const server = await startTestServer();
    const sandbox = await create(server.url, DURABLE);
    const running = sandbox.run("bash", "read x; echo $x");
    await expect(sandbox.checkpoint()).rejects.toMatchObject({ code: "execution_in_progress" });
    sandbox.stdin("on\n");
    expect(await running).toMatchObject({ stdout: "on\n" });
  });

  test("a server that shuts down, a message that is too large, and an unreachable server", async () => {
    const server = await startTestServer();
    const large = await create(server.url);
    await expect(large.run("bash", "x".repeat(2_000_000))).rejects.toMatchObject({ code: "too_large" });
    const sandbox = await create(server.url);
    const running = sandbox.run("bash", "sleep 60").catch((error: unknown) => error);
    await server.drain();
    expect(await running).toMatchObject({ code: "draining" });
    await expect(create(server.url)).rejects.toMatchObject({ code: "backend_unavailable" });
  });

  test("an aborted wait", async () => {
    const server = await startTestServer();
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("acquire", { until: held.promise });
    await expect(create(server.url, {}, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    held.resolve();
  });
});

test("a key of the server is sent", async () => {
  const server = await startTestServer({ apiKeys: ["the-key"] });
  await expect(create(server.url)).rejects.toMatchObject({ code: "backend_unavailable" });
  const sandbox = await create(server.url, {}, { apiKey: "the-key" });
  await sandbox.close();
  await attach(server.url, sandbox.id, { token: sandbox.token ?? "" });
});
