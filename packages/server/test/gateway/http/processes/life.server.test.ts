import type { ProcessRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { KeyFile } from "../../../../src/gateway/access/key-file.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../../test/kit/server/test-server.ts";
import { SandboxClient, text } from "./support.ts";

test("started processes are listed, described and dropped", async () => {
  const box = await SandboxClient.create(await startTestServer());
  expect(await box.processes()).toEqual([]);
  const first = await box.spawn({ command: ["sleep", "300"] });
  const second = await box.spawn({ shell: "echo hi; exit 2" });
  await eventually("it has ended", async () => (await box.process(second.id)).state === "exited");
  const [one, two] = await box.processes();
  expect(one).toEqual({
    id: first.id,
    started_at: first.started_at,
    pid: first.pid,
    state: "running",
    command: ["sleep", "300"],
    exit_code: null,
    signal: null,
    pty: false,
    detached: false,
    output_start: 0,
    output_end: 0,
    acknowledged: 0,
  });
  expect(two).toMatchObject({ id: second.id, state: "exited", exit_code: 2, output_end: 3 });
  const table = await box.call<{ items: { pid: number; command: string }[] }>("GET", "/process-table");
  expect(table.body.items.map(({ pid }) => pid)).toContain(first.pid);
  for (const { id } of [first, second]) expect((await box.call("DELETE", `/processes/${id}`)).status).toBe(204);
  expect(await box.processes()).toEqual([]);
  const gone = await box.call("GET", `/processes/${first.id}`);
  expect([gone.status, gone.body.error.code]).toEqual([404, "process_not_found"]);
});

test("drops a process whose log is full", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id } = await box.spawn({ shell: "yes 0123456 | head -c 4000000" });
  await eventually("the log is full", async () => (await box.process(id)).output_end === 1024 * 1024);
  expect((await box.call("DELETE", `/processes/${id}`)).status).toBe(204);
  expect(await box.processes()).toEqual([]);
});

test("signals go by name or number, and an unknown one is refused", async () => {
  const box = await SandboxClient.create(await startTestServer());
  for (const [signal, name] of [
    ["SIGTERM", "SIGTERM"],
    ["INT", "SIGINT"],
    [9, "SIGKILL"],
  ] as const) {
    const { id } = await box.spawn({ shell: "sleep 300" });
    expect((await box.call("POST", `/processes/${id}/signal`, { signal })).status).toBe(204);
    await eventually("it has ended", async () => (await box.process(id)).signal === name);
  }
  const { id } = await box.spawn({ shell: "sleep 300" });
  for (const signal of ["SIGNOT", "sigterm", 0, 65]) {
    const answer = await box.call("POST", `/processes/${id}/signal`, { signal });
    expect([signal, answer.status, answer.body.error.code]).toEqual([signal, 400, "bad_request"]);
  }
});

test("output is read from an offset, and acknowledged only when the reader says so", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id } = await box.spawn({ shell: "echo one; read x; echo two" });
  await eventually("it has begun", async () => (await box.process(id)).output_end === 4);
  const lines = await box.output(id, "?offset=2");
  expect(lines).toMatchObject([
    { event: "started", offset: 2 },
    { data: "e\n", offset: 4 },
    { event: "end", offset: 4 },
  ]);
  expect((await box.process(id)).acknowledged).toBe(0);
  await box.output(id, "?offset=4&acknowledge=true");
  expect((await box.process(id)).acknowledged).toBe(4);
  await box.output(id, "?offset=100&acknowledge=true");
  expect(await box.stdin(id, "x\n", "?close=true")).toBe(204);
  expect(text(await box.output(id, "?follow=true"))).toBe("two\n");
  expect((await box.output(id, "?offset=0")).at(-1)).toMatchObject({ event: "exit", exit_code: 0, offset: 8 });
  expect(await box.stdin(id, "late")).toBe(409);
  expect(await box.stdin(id, "x".repeat(60_000_000))).toBe(409);
});

test("stdin of any size is streamed", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id } = await box.spawn({ shell: "cat" });
  const following = box.output(id, "?follow=true");
  const data = "0123456789".repeat(300_000);
  expect(await box.stdin(id, data, "?close=true")).toBe(204);
  expect(text(await following)).toBe(data);
});

test("a process without a reader blocks when its log is full; a detached one does not", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const kept = await box.spawn({ shell: "yes 0123456 | head -c 2000000" });
  const detached = await box.spawn({ shell: "yes 0123456 | head -c 2000000", detach: true });
  await eventually("one has ended", async () => (await box.process(detached.id)).state === "exited");
  const { output_start: start, output_end: end } = await box.process(detached.id);
  expect([end, end - start >= 256 * 1024, start > 0]).toEqual([2_000_000, true, true]);
  expect(await box.process(kept.id)).toMatchObject({ state: "running", output_end: 1024 * 1024, acknowledged: 0 });
  expect(text(await box.output(kept.id, "?follow=true")).length).toBe(2_000_000);
});

test("a running process keeps its sandbox from being idle until it ends", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server, { idle_timeout: 0.3 });
  const { id } = await box.spawn({ shell: "read x" });
  const sandbox = await server.live(box.id);
  expect(sandbox.isIdle(Number.MAX_SAFE_INTEGER)).toBe(false);
  await box.stdin(id, "\n");
  await eventually("it is gone", () => sandbox.state === "gone");
});

test("a sandbox that is saved on disconnect waits for its processes", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ enable_checkpoint: true, on_disconnect: "checkpoint" });
  const box = new SandboxClient(server, id);
  const process = await box.spawn({ shell: "read x; echo done" });
  const sandbox = await server.live(id);
  await client.leave();
  await eventually("it has left", () => sandbox.client === undefined);
  expect(await box.process(process.id)).toMatchObject({ state: "running" });
  await box.stdin(process.id, "\n");
  await eventually("it is saved", () => sandbox.state === "gone");
  await box.call("POST", "/resume");
  expect(text(await box.output(process.id))).toBe("done\n");
});

test("a limited number of ended processes is remembered, and unread ones are not dropped", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const unread = await box.spawn({ shell: "echo keep me" });
  for (let round = 0; round < 8; round += 1) {
    await Promise.all(Array.from({ length: 10 }, () => box.exec({ shell: "true" })));
  }
  const processes: ProcessRecord[] = await box.processes();
  // 64, the unread one, and the last ten, which came when there was still room.
  expect(processes.length).toBeLessThanOrEqual(75);
  expect(text(await box.output(unread.id))).toBe("keep me\n");
});

test("calls for a sandbox on another server name its location, and an old epoch is refused", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const stale = await box.call("POST", "/exec", { shell: "true" }, { "if-sandbox-epoch": "7" });
  expect([stale.status, stale.body.error.code]).toEqual([412, "stale_epoch"]);
  await box.call("POST", "/checkpoint");
  const stored = await box.call("POST", "/exec", { shell: "true" });
  expect([stored.status, stored.body.error.details["state"]]).toEqual([409, "stored"]);
});

test("a key with the scope read sees the output, and interrupts no reader", async () => {
  const file = new KeyFile(await temporaryFolder());
  const [reader, user] = [
    await file.create({ name: "reader", scope: "read" }),
    await file.create({ name: "user", scope: "use" }),
  ];
  const server = await startTestServer({ access: { keyFile: file.path } });
  const { id } = (await server.create({}, { headers: { authorization: `Bearer ${user.text}` } })) as { id: string };
  const call = async (
    key: string,
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${server.httpUrl}/v1/sandboxes/${id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
  expect((await call(reader.text, "POST", "/exec", { shell: "true" })).status).toBe(403);
  const started = await call(user.text, "POST", "/exec", { shell: "echo hi", wait: false });
  const output = `/processes/${(JSON.parse(started.text) as ProcessRecord).id}/output`;
  expect((await call(user.text, "GET", `${output}?follow=true`)).text).toContain("exit");
  expect((await call(reader.text, "GET", `${output}?offset=0`)).text).toContain("hi");
  expect((await call(reader.text, "GET", `${output}?follow=true`)).status).toBe(403);
  expect((await call(reader.text, "GET", `${output}?offset=1&acknowledge=true`)).status).toBe(403);
});

test("the end of a process that arrives with its start counts, once", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  const { handle, unsaved } = await server.live(box.id);
  const exec = handle.exec.bind(handle);
  handle.exec = async (command, options) => {
    const process = await exec(command, options);
    await process.exited;
    // A caller that lists processes meanwhile sees it first.
    await box.processes();
    return process;
  };
  await box.exec({ shell: "echo at once" });
  expect(unsaved.turns).toBe(1);
  expect(server.operations.filter(({ operation }) => operation === "execute")).toHaveLength(1);
});
