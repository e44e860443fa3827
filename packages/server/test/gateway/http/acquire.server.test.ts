import { readdir, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type Answer, type ErrorAnswer } from "./support.ts";

type Acquired = SandboxRecord & { readonly tier: string; readonly token: string | null };

function acquire(server: TestServer, body: object = {}): Promise<Answer<Acquired>> {
  return new HttpClient(server).call("POST", "/v1/sandboxes/acquire", { key: "my-convo", ...body });
}

async function mark(server: TestServer, id: string): Promise<void> {
  await (await server.live(id)).handle.files.write("/workspace/mark", Buffer.from("x"));
}

async function marked(server: TestServer, id: string): Promise<boolean> {
  const { files } = (await server.live(id)).handle;
  return files.stat("/workspace/mark").then(
    () => true,
    () => false,
  );
}

test("the same key and spec return the same sandbox: running, paused, or on another server", async () => {
  const one = await startTestServer();
  const two = await startTestServer({ store: one.storeFolder ?? null });
  const fresh = (await acquire(one)).body;
  expect(fresh).toMatchObject({ tier: "fresh", token: expect.any(String), key: "my-convo" });
  await mark(one, fresh.id);
  expect((await acquire(one)).body).toMatchObject({ id: fresh.id, tier: "reattached", token: null });
  await new HttpClient(one).call("POST", `/v1/sandboxes/${fresh.id}/checkpoint`);
  expect((await acquire(one)).body).toMatchObject({ id: fresh.id, tier: "reattached", state: "running" });
  const moved = (await acquire(two)).body;
  expect(moved).toMatchObject({ id: fresh.id, tier: "reattached", owner: { here: true } });
  expect(await marked(two, fresh.id)).toBe(true);
  const events = await new HttpClient(two).call<{ items: { data: object }[] }>(
    "GET",
    "/v1/events?type=sandbox.acquired",
  );
  expect(events.body.items.map(({ data }) => data)).toEqual([{ key: "my-convo", tier: "reattached" }]);
});

test("another spec creates another sandbox, and the old one is deleted", async () => {
  const server = await startTestServer();
  const first = (await acquire(server)).body;
  const second = (await acquire(server, { env: { MODE: "other" } })).body;
  expect(second.tier).toBe("fresh");
  expect(second.id).not.toBe(first.id);
  expect((await new HttpClient(server).get(first.id)).state).toBe("destroyed");
});

test("a missing sandbox is restored from its newest snapshot", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const first = (await acquire(server)).body;
  await http.call("POST", `/v1/sandboxes/${first.id}/snapshot`);
  await mark(server, first.id);
  await http.call("POST", `/v1/sandboxes/${first.id}/snapshot`);
  await http.call("DELETE", `/v1/sandboxes/${first.id}`);
  const restored = (await acquire(server)).body;
  expect(restored).toMatchObject({ tier: "restored", key: "my-convo", token: expect.any(String) });
  expect(await marked(server, restored.id)).toBe(true);
  expect((await acquire(server)).body).toMatchObject({ id: restored.id, tier: "reattached" });
  expect((await acquire(server, { key: "another" })).body.tier).toBe("fresh");
});

test("callers that ask at once, at one server or at two, get the same sandbox", async () => {
  const one = await startTestServer();
  const two = await startTestServer({ store: one.storeFolder ?? null });
  const answers = await Promise.all([acquire(one), acquire(one), acquire(two), acquire(two)]);
  expect(answers.map(({ status, body }) => (status === 200 ? 200 : body))).toEqual([200, 200, 200, 200]);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  const all = await new HttpClient(one).call<{ items: SandboxRecord[] }>("GET", "/v1/sandboxes?key=my-convo");
  expect(all.body.items).toHaveLength(1);
});

test("a sandbox that does not answer is replaced", async () => {
  const server = await startTestServer();
  const first = (await acquire(server, { enable_checkpoint: false })).body;
  server.backend.crash(first.id);
  const second = (await acquire(server, { enable_checkpoint: false })).body;
  expect(second).toMatchObject({ tier: "fresh" });
  expect(second.id).not.toBe(first.id);
});

test("a sandbox whose newest state is damaged is not deleted: its intact states can be resumed", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = (await acquire(server)).body;
  await mark(server, id);
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
  const whole = (await http.get(id)).checkpoint?.name ?? "";
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  const newest = (await http.get(id)).checkpoint?.name ?? "";
  expect(newest).not.toBe(whole);
  const path = (name: string): string => join(server.storeFolder ?? "", id, "checkpoints", name);
  await truncate(path(newest), 100);
  const refused = (await acquire(server)) as Answer as Answer<ErrorAnswer>;
  expect(refused.status).toBe(422);
  expect(refused.body.error).toMatchObject({ code: "image_damaged", details: { whole_checkpoint: whole } });
  expect(refused.body.error.hint).toMatch(new RegExp(`checkpoint=${whole}.*sandboxer rm ${id}`));
  expect((await http.get(id)).state).toBe("stored");
  expect((await http.call("POST", `/v1/sandboxes/${id}/resume`, { checkpoint: whole })).status).toBe(200);
  expect((await acquire(server)).body).toMatchObject({ id, tier: "reattached" });
  expect(await marked(server, id)).toBe(true);

  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  for (const name of await readdir(path(""))) await truncate(path(name), 100);
  const none = (await acquire(server)) as Answer as Answer<ErrorAnswer>;
  expect(none.body.error).toMatchObject({ code: "image_damaged", details: { whole_checkpoint: null } });
  expect((await http.get(id)).state).toBe("stored");
  await http.call("DELETE", `/v1/sandboxes/${id}`);
  expect((await acquire(server)).body.tier).toBe("fresh");
});

test("a sandbox that is in use on another server is not deleted", async () => {
  const one = await startTestServer();
  const two = await startTestServer({ store: one.storeFolder ?? null });
  const body = { enable_sandbox_handoff: false };
  const { id } = (await acquire(one, body)).body;
  const client = one.attach(id);
  await client.until("RUNNING");
  const refused = (await acquire(two, body)) as Answer as Answer<ErrorAnswer>;
  expect(refused.status).toBe(409);
  expect((await new HttpClient(one).get(id)).state).toBe("running");
});

test("a key is needed", async () => {
  const server = await startTestServer();
  expect((await new HttpClient(server).call("POST", "/v1/sandboxes/acquire", {})).status).toBe(400);
});

test("an expired sandbox that is requested again gets the lifetime of the request", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const first = (await acquire(server, { ttl: "1h" })).body;
  await mark(server, first.id);
  await http.call("PATCH", `/v1/sandboxes/${first.id}/ttl`, { duration: "1s" });
  await expect.poll(async () => (await http.get(first.id)).state, { timeout: 10_000 }).toBe("stored");
  const again = (await acquire(server, { ttl: "1h", on_expiry: "delete" })).body;
  expect(again.on_expiry).toBe("delete");
  expect(again).toMatchObject({ id: first.id, tier: "reattached", state: "running" });
  expect(Date.parse(again.expires_at ?? "")).toBeGreaterThan(Date.now() + 3_000_000);
  expect(await marked(server, first.id)).toBe(true);
});
