import type { EventRecord, OperationRecordBody } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { absentableStore } from "../../manager/support/absentable-store.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

/** The events of a sandbox of one kind. */
async function told(server: TestServer, id: string, type: string): Promise<(EventRecord["data"] & { type: string })[]> {
  const path = `/v1/events?sandbox_id=${id}&type=${type}&limit=1000&relay=never`;
  const { body } = await new HttpClient(server).call<{ items: EventRecord[] }>("GET", path);
  return body.items.map((event) => ({ ...event.data, type: event.type }));
}

test("executions are recorded, however they were started", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { client, id } = await server.create();
  client.send({ language: "bash", code: "exit 3" });
  await client.until("EXECUTION_DONE");
  await http.call("POST", `/v1/sandboxes/${id}/exec`, { command: ["true", "an argument"] });
  await http.call("POST", `/v1/sandboxes/${id}/exec`, { language: "python", code: "print(1)" });
  await expect.poll(async () => await told(server, id, "execution")).toHaveLength(6);
  const events = await told(server, id, "execution");
  expect(events.filter(({ type }) => type === "execution.started")).toMatchObject([
    { kind: "execution", command: "exit 3", language: "bash" },
    { kind: "process", command: "true an argument", language: null, pty: false, detached: false, omitted: 0 },
    { kind: "process", command: "print(1)", language: "python" },
  ]);
  expect(events.filter(({ type }) => type === "execution.ended")).toMatchObject([
    { exit_code: 3, outcome: "exited", signal: null, timed_out: false },
    { exit_code: 0 },
    { exit_code: 0 },
  ]);
  const ids = events.map(({ process_id }) => process_id);
  expect(new Set(ids).size).toBe(3);
});

test("an execution that continues elsewhere leaves here, and is continued there until its end", async () => {
  const first = await startTestServer();
  const second = await startTestServer({ store: first.storeFolder ?? null });
  const [here, there] = [new HttpClient(first), new HttpClient(second)];
  const { id } = await here.create({ enable_sandbox_handoff: true });
  const started = { shell: "read line", wait: false };
  const { body } = await here.call<{ id: string }>("POST", `/v1/sandboxes/${id}/exec`, started);
  await there.call("POST", `/v1/sandboxes/${id}/resume`);
  await expect.poll(async () => await told(second, id, "execution")).toHaveLength(1);
  expect(await told(first, id, "execution.ended")).toMatchObject([{ outcome: "left", exit_code: null }]);
  await there.call("POST", `/v1/sandboxes/${id}/processes/${body.id}/signal`, { signal: "SIGKILL" });
  await expect.poll(async () => await told(second, id, "execution")).toHaveLength(2);
  expect(await told(second, id, "execution")).toMatchObject([
    { type: "execution.continued", process_id: body.id },
    { type: "execution.ended", process_id: body.id, signal: "SIGKILL", elapsed_ms: null },
  ]);
});

interface Handoff {
  readonly elapsed_ms: number;
  readonly paused_ms: number;
}

async function operations(server: TestServer, id: string): Promise<OperationRecordBody[]> {
  const path = `/v1/operations?sandbox_id=${id}&relay=never`;
  return (await new HttpClient(server).call<{ items: OperationRecordBody[] }>("GET", path)).body.items;
}

test("a handoff is recorded on both sides, with the pause between them", async () => {
  const one = await startTestServer();
  const two = await startTestServer({ store: one.storeFolder ?? null });
  const http = new HttpClient(one);
  const { id } = await http.create();
  const { body } = await http.call<Handoff>("POST", `/v1/sandboxes/${id}/handoff`, { to: two.httpUrl });
  const [from, to] = [one.instances.instanceId, two.instances.instanceId];
  expect(await told(one, id, "sandbox.handed_over")).toMatchObject([{ from, to }]);
  const [taken] = await told(two, id, "sandbox.taken_over");
  expect(taken).toMatchObject({ from, to, epoch: 2 });
  // One clock here: what the newcomer sees lies within what the owner sees, which also waits for the answer.
  expect(body.paused_ms).toBeLessThanOrEqual(body.elapsed_ms);
  expect(taken?.["paused_ms"]).toBeGreaterThanOrEqual(0);
  expect(taken?.["paused_ms"]).toBeLessThanOrEqual(body.paused_ms + 2);
  const [handoff] = (await operations(one, id)).filter(({ kind }) => kind === "handoff");
  expect(handoff?.paused_ms).toBe(body.paused_ms);
  const [resumed] = await operations(two, id);
  expect(resumed).toMatchObject({ kind: "resume", paused_ms: taken?.["paused_ms"] });
});

test("a checkpoint is reported with its bytes; a later resume counts as no pause of ours", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  const { checkpoint } = await http.get(id);
  expect(await told(server, id, "checkpoint")).toMatchObject([
    { name: checkpoint?.name, size_bytes: checkpoint?.size_bytes, reason: "request", parent: null },
  ]);
  await http.call("POST", `/v1/sandboxes/${id}/resume`);
  const [resumed, saved] = await operations(server, id);
  expect(saved?.paused_ms).toBeGreaterThan(0);
  expect(saved?.paused_ms).toBeLessThanOrEqual(saved?.elapsed_ms ?? 0);
  expect(resumed).toMatchObject({ kind: "resume", paused_ms: null });
  expect(await told(server, id, "sandbox.taken_over")).toEqual([]);
});

test.each([
  ["a snapshot", "snapshot", {}],
  ["a snapshot of files", "snapshot", { mode: "filesystem" }],
  ["a fork", "fork", { count: 1 }],
])("%s reports how long the sandbox was stopped", async (_what, verb, request) => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  expect((await http.call("POST", `/v1/sandboxes/${id}/${verb}`, request)).status).toBe(201);
  const [operation] = await operations(server, id);
  expect(operation?.kind).toBe(verb);
  expect(operation?.paused_ms).toBeGreaterThan(0);
  expect(operation?.paused_ms).toBeLessThanOrEqual(operation?.elapsed_ms ?? 0);
});

test("a freeze and its thaw are reported once each, with the reason and the time", async () => {
  const store = absentableStore();
  const server = await startTestServer({ leaseTtlMs: 1_000, wrapStore: store.wrapStore });
  const { id } = await new HttpClient(server).create();
  store.away = true;
  await expect.poll(async () => await told(server, id, "sandbox.frozen")).not.toHaveLength(0);
  store.away = false;
  await expect.poll(async () => await told(server, id, "sandbox.thawed")).not.toHaveLength(0);
  // A busy machine may freeze it once more.
  const [frozen, thawed] = (await told(server, id, "sandbox")).filter(({ type }) => /frozen|thawed/.test(type));
  expect(frozen).toMatchObject({
    type: "sandbox.frozen",
    reason: "lease_not_renewed",
    message: expect.stringContaining("store") as string,
  });
  expect(thawed?.type).toBe("sandbox.thawed");
  expect(thawed?.["frozen_ms"]).toBeGreaterThanOrEqual(0);
});

test("a sandbox that ends on its own has the reason", async () => {
  const server = await startTestServer();
  const { id } = await new HttpClient(server).create();
  server.backend.crash(id);
  await expect.poll(async () => await told(server, id, "sandbox.failed")).toHaveLength(1);
  expect(await told(server, id, "sandbox.failed")).toMatchObject([{ reason: "crashed" }]);
});
