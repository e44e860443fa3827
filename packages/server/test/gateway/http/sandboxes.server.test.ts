import type { OperationRecordBody, SandboxRecord } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

interface List {
  readonly items: SandboxRecord[];
  readonly next_cursor: string | null;
}

const PATIENCE = { timeout: 60_000 };
const ABSENT = "00000000-0000-4000-8000-000000000000";

describe("create, list, get, destroy", () => {
  test("a sandbox has a record, until it is destroyed", async () => {
    const http = new HttpClient(await startTestServer());
    const made = await http.create({ name: "box", labels: { team: "ml" }, ttl: "1h", idle_timeout: "15m" });
    expect(made.token).toMatch(/^[0-9a-f]{64}$/);
    const record = await http.get(made.id);
    expect(record).toMatchObject({
      name: "box",
      state: "running",
      backend: "fake",
      labels: { team: "ml" },
      idle_timeout: 900,
      epoch: 1,
      owner: { here: true },
      flags: { enable_checkpoint: true, enable_sandbox_handoff: true },
    });
    expect(record).not.toHaveProperty("token");
    expect(Date.parse(record.expires_at ?? "")).toBeGreaterThan(Date.now() + 3_500_000);
    expect((await http.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBe(200);
    expect((await http.get(made.id)).state).toBe("destroyed");
    const again = await http.call<ErrorAnswer>("DELETE", `/v1/sandboxes/${made.id}`);
    expect([again.status, again.body.error.code]).toEqual([410, "sandbox_destroyed"]);
  });

  test("an unknown id is 404 for every call", async () => {
    const http = new HttpClient(await startTestServer());
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/checkpoint"],
      ["POST", "/resume"],
      ["POST", "/recreate"],
      ["GET", "/reachability"],
      ["GET", "/stats"],
    ] as const) {
      const answer = await http.call<ErrorAnswer>(method, `/v1/sandboxes/${ABSENT}${path}`);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 404, "sandbox_not_found"]);
    }
  });

  test("lists are filtered and paged, newest first, stored ones included", async () => {
    const http = new HttpClient(await startTestServer());
    const first = await http.create({ name: "one", labels: { kind: "a" } });
    const second = await http.create({ name: "two", labels: { kind: "a", extra: "" } });
    const third = await http.create({ name: "three", labels: { kind: "b" } });
    await http.call("POST", `/v1/sandboxes/${first.id}/checkpoint`);
    const names = async (query: string): Promise<(string | null)[]> =>
      (await http.call<List>("GET", `/v1/sandboxes${query}`)).body.items.map(({ name }) => name);
    expect(new Set(await names(""))).toEqual(new Set(["one", "two", "three"]));
    expect(await names("?state=stored")).toEqual(["one"]);
    expect(new Set(await names("?label=kind=a"))).toEqual(new Set(["one", "two"]));
    expect(await names("?label=kind=a&label=extra")).toEqual(["two"]);
    expect(await names("?name=three")).toEqual(["three"]);
    const page = (await http.call<List>("GET", "/v1/sandboxes?limit=2")).body;
    expect(page.items).toHaveLength(2);
    const rest = (await http.call<List>("GET", `/v1/sandboxes?limit=2&cursor=${page.next_cursor}`)).body;
    expect(rest.next_cursor).toBeNull();
    const ids = [...page.items, ...rest.items].map(({ id }) => id);
    expect(new Set(ids)).toEqual(new Set([first.id, second.id, third.id]));
    await http.call("DELETE", `/v1/sandboxes/${ids[1]}`);
    const after = (await http.call<List>("GET", `/v1/sandboxes?limit=2&cursor=${page.next_cursor}`)).body;
    expect(after.items.map(({ id }) => id)).toEqual([ids[2]]);
    expect((await http.call("GET", "/v1/sandboxes?cursor=nonsense")).status).toBe(400);
  });

  test("the same Idempotency-Key returns the first response, also while the first call is in progress", async () => {
    const http = new HttpClient(await startTestServer());
    const headers = { "idempotency-key": "k1" };
    const create = (): Promise<{ status: number; body: { id: string; token: string } }> =>
      http.call("POST", "/v1/sandboxes", { name: "x" }, { headers });
    const [one, two] = await Promise.all([create(), create()]);
    const three = await create();
    expect(two.body).toEqual(one.body);
    expect(three.body).toEqual(one.body);
    expect((await http.call<List>("GET", "/v1/sandboxes")).body.items).toHaveLength(1);
    const other = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { name: "y" }, { headers });
    expect(other.status).toBe(400);
  });

  test("a request that the server cannot fulfil is refused with the next step", async () => {
    const http = new HttpClient(await startTestServer({ store: null }));
    const durable = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { enable_checkpoint: true });
    expect([durable.status, durable.body.error.code]).toEqual([422, "checkpoint_disabled"]);
    const backend = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { backend: "nope" });
    expect([backend.status, backend.body.error.message]).toEqual([400, expect.stringContaining("fake")]);
    const profile = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { profile: "nope" });
    expect([profile.status, profile.body.error.code]).toEqual([404, "profile_not_found"]);
    expect((await http.create()).flags.enable_checkpoint).toBe(false);
  });
});

describe("pausing and resuming", () => {
  test("checkpoint saves and stops, resume continues; a stored sandbox answers 409 with its state", async () => {
    const http = new HttpClient(await startTestServer());
    const { id } = await http.create();
    const saved = await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect(saved.body).toMatchObject({ state: "stored", owner: null, checkpoint: { name: expect.any(String) } });
    const refused = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect([refused.status, refused.body.error.details["state"]]).toEqual([409, "stored"]);
    const awake = await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`);
    expect(awake.body).toMatchObject({ state: "running", epoch: 2 });
    expect((await http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`)).body.epoch).toBe(2);
  });

  test("a stale epoch is refused with the current one, and nothing changes", async () => {
    const http = new HttpClient(await startTestServer());
    const { id } = await http.create();
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    await http.call("POST", `/v1/sandboxes/${id}/resume`);
    const headers = { "if-sandbox-epoch": "1" };
    const stale = await http.call<ErrorAnswer>("DELETE", `/v1/sandboxes/${id}`, undefined, { headers });
    expect([stale.status, stale.body.error.code, stale.body.error.details["epoch"]]).toEqual([412, "stale_epoch", 2]);
    expect((await http.get(id)).state).toBe("running");
    const right = { "if-sandbox-epoch": "2" };
    expect((await http.call("DELETE", `/v1/sandboxes/${id}`, undefined, { headers: right })).status).toBe(200);
    const nonsense = await http.call("DELETE", `/v1/sandboxes/${id}`, undefined, {
      headers: { "if-sandbox-epoch": "x" },
    });
    expect(nonsense.status).toBe(400);
  });

  test("a sandbox is handed from one server to another, which the first one then names", async () => {
    const one = await startTestServer();
    const two = await startTestServer({ store: one.storeFolder ?? null });
    const [a, b] = [new HttpClient(one), new HttpClient(two)];
    const { id } = await a.create();
    const headers = { "sandboxer-relay": "never" };
    const held = await b.call<ErrorAnswer>("GET", `/v1/sandboxes/${id}/stats`, undefined, { headers });
    expect([held.status, held.body.error.code]).toEqual([409, "lease_held"]);
    expect(held.body.error.details).toMatchObject({ url: one.httpUrl, epoch: 1 });
    const nobody = await a.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/handoff`, { to: "http://127.0.0.1:1" });
    expect([nobody.status, nobody.body.error.hint]).toEqual([400, expect.stringContaining(two.httpUrl)]);
    const moved = await a.call<{ sandbox: SandboxRecord }>("POST", `/v1/sandboxes/${id}/handoff`, { to: two.httpUrl });
    expect(moved.status).toBe(200);
    expect(moved.body.sandbox).toMatchObject({ epoch: 2, owner: { url: two.httpUrl, here: false } });
    expect((await b.get(id)).owner?.here).toBe(true);
    const instances = await a.call<{ items: { url: string; owns: string[] }[] }>("GET", "/v1/instances");
    expect(instances.body.items.find(({ url }) => url === two.httpUrl)?.owns).toEqual([id]);
  });

  test("respond-async answers with the operation, whose record has the result", async () => {
    const http = new HttpClient(await startTestServer());
    const headers = { prefer: "respond-async" };
    const started = await http.call<OperationRecordBody>("POST", "/v1/sandboxes", {}, { headers });
    expect([started.status, started.body.kind]).toEqual([202, "create"]);
    const path = `/v1/operations/${started.body.id}?wait=30`;
    const ended = (await http.call<OperationRecordBody>("GET", path)).body;
    expect(ended).toMatchObject({ state: "done", result: { token: expect.any(String), state: "running" } });
    expect(ended.sandbox_id).toBe((ended.result as { id: string }).id);
    const listed = await http.call<{ items: OperationRecordBody[] }>("GET", "/v1/operations");
    expect(JSON.stringify(listed.body)).not.toContain((ended.result as { token: string }).token);
    const failing = await http.call<OperationRecordBody>("POST", `/v1/sandboxes/${ABSENT}/resume`, {}, { headers });
    const failed = (await http.call<OperationRecordBody>("GET", `/v1/operations/${failing.body.id}?wait=30`)).body;
    expect(failed).toMatchObject({ state: "failed", error: { code: "sandbox_not_found" } });
  });

  test("recreate creates it again under the same id and token", async () => {
    const server = await startTestServer();
    const http = new HttpClient(server);
    const { id, token } = await http.create();
    const files = async () => (await server.live(id)).handle.files;
    await (await files()).write("/workspace/mark", Buffer.from("x"));
    expect((await http.call("POST", `/v1/sandboxes/${id}/recreate`)).status).toBe(200);
    await expect((await files()).stat("/workspace/mark")).rejects.toMatchObject({ code: "file_not_found" });
    const client = server.attach(id, `?sandbox_token=${token}`);
    await client.until("RUNNING");
    const used = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${id}/recreate`);
    expect([used.status, used.body.error.code]).toEqual([409, "sandbox_in_use"]);
  });
});

describe("time to live", () => {
  test("expire lists expired sandboxes, and deletes them on request", async () => {
    const http = new HttpClient(await startTestServer());
    const stays = await http.create({ ttl: "1h" });
    const goes = await http.create({ ttl: "1s", enable_checkpoint: false });
    const saved = await http.create({ ttl: "1s" });
    // By themselves they only stop: what can be saved is saved.
    await expect.poll(async () => (await http.call("GET", `/v1/sandboxes/${goes.id}`)).status, PATIENCE).toBe(404);
    await expect.poll(async () => (await http.get(saved.id)).state, PATIENCE).toBe("stored");
    const over = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${saved.id}/resume`);
    expect([over.status, over.body.error.hint]).toEqual([409, expect.stringContaining("extend-ttl")]);
    const more = await http.create({ ttl: "1s" });
    await expect.poll(async () => (await http.get(more.id)).state, PATIENCE).toBe("stored");
    await http.call("PATCH", `/v1/sandboxes/${more.id}/ttl`, { duration: "1h" });
    expect((await http.call<SandboxRecord>("POST", `/v1/sandboxes/${more.id}/resume`)).body.state).toBe("running");
    const past = async (apply: string): Promise<Set<string>> => {
      const answer = await http.call<{ items: SandboxRecord[] }>("POST", `/v1/sandboxes/expire${apply}`);
      return new Set(answer.body.items.map(({ id }) => id));
    };
    expect(await past("")).toEqual(new Set([saved.id]));
    expect((await http.get(saved.id)).state).toBe("stored");
    expect(await past("?apply=true")).toEqual(new Set([saved.id]));
    expect((await http.get(saved.id)).state).toBe("destroyed");
    expect((await http.get(stays.id)).state).toBe("running");
  });

  test("with on_expiry: delete, a sandbox is deleted when it expires, running or paused, by any server of the store", async () => {
    const one = await startTestServer();
    const http = new HttpClient(one);
    const running = await http.create({ ttl: "1s", on_expiry: "delete" });
    const paused = await http.create({ ttl: "1h", on_expiry: "delete" });
    const kept = await http.create({ ttl: "1h", on_expiry: "delete" });
    expect(await http.get(paused.id)).toMatchObject({ on_expiry: "delete" });
    const gone = async (client: HttpClient, id: string): Promise<void> => {
      await expect.poll(async () => (await client.get(id)).state, PATIENCE).toBe("destroyed");
    };
    await gone(http, running.id);

    for (const { id } of [paused, kept]) await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    const shorter = await http.call<SandboxRecord>("PATCH", `/v1/sandboxes/${paused.id}`, { ttl: "1s" });
    expect(shorter.body).toMatchObject({ state: "stored", on_expiry: "delete" });
    await gone(http, paused.id);

    await http.call("PATCH", `/v1/sandboxes/${kept.id}/ttl`, { duration: "1h", on_expiry: "pause" });
    await http.call("PATCH", `/v1/sandboxes/${kept.id}`, { ttl: null });
    expect(await http.get(kept.id)).toMatchObject({ state: "stored", expires_at: null, on_expiry: "pause" });

    const last = await http.create({ ttl: "2s", on_expiry: "delete" });
    await http.call("POST", `/v1/sandboxes/${last.id}/checkpoint`);
    const { storeFolder } = one;
    await one.drain();
    await gone(new HttpClient(await startTestServer({ store: storeFolder ?? null })), last.id);
  });

  test("is extended from now on, and survives a pause", async () => {
    const http = new HttpClient(await startTestServer());
    const { id } = await http.create({ ttl: "1m" });
    const extended = await http.call<SandboxRecord>("PATCH", `/v1/sandboxes/${id}/ttl`, { duration: "2h" });
    expect(Date.parse(extended.body.expires_at ?? "")).toBeGreaterThan(Date.now() + 7_000_000);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect((await http.get(id)).expires_at).toBe(extended.body.expires_at);
    for (const duration of ["0h", "4hours", ""]) {
      const bad = await http.call<ErrorAnswer>("PATCH", `/v1/sandboxes/${id}/ttl`, { duration });
      expect([duration, bad.status]).toEqual([duration, 400]);
    }
  });

  test("name, labels and idle timeout change, here and in the store", async () => {
    const http = new HttpClient(await startTestServer());
    const { id } = await http.create({ name: "old", labels: { a: "1" } });
    const changes = { name: "new", labels: { b: "2" }, idle_timeout: 7, on_expiry: "delete" };
    expect((await http.call<SandboxRecord>("PATCH", `/v1/sandboxes/${id}`, changes)).body).toMatchObject(changes);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect(await http.get(id)).toMatchObject(changes);
  });
});

describe("reachability", () => {
  test("reports whether it answers, and which other server has it", async () => {
    const one = await startTestServer();
    const two = await startTestServer({ store: one.storeFolder ?? null });
    const [a, b] = [new HttpClient(one), new HttpClient(two)];
    const { id } = await a.create();
    const here = await a.call<{ reachable: boolean; round_trip_ms: number }>("GET", `/v1/sandboxes/${id}/reachability`);
    expect(here.body.reachable).toBe(true);
    expect(here.body.round_trip_ms).toBeGreaterThanOrEqual(0);
    const headers = { "sandboxer-relay": "never" };
    const there = await b.call<object>("GET", `/v1/sandboxes/${id}/reachability`, undefined, { headers });
    expect(there.body).toMatchObject({ reachable: false, owner_url: one.httpUrl, state: "running" });
  });
});
