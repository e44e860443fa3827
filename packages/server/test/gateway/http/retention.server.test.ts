import { profileSchema, type SandboxRecord, type SnapshotInfo } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { collectGarbage } from "../../../src/collection/collect-garbage.ts";
import { ProfileCatalog } from "../../../src/profiles/profile-catalog.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { SnapshotClient } from "./snapshot-client.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

async function checkpointsOf(server: TestServer, id: string): Promise<number> {
  return (await server.durable.checkpoints.list(id))?.length ?? 0;
}

async function saveTimes(http: HttpClient, id: string, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1)
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
}

async function start(options: TestServerOptions = {}) {
  const server = await startTestServer(options);
  return { server, api: new SnapshotClient(server) };
}

async function collectAt(server: TestServer, apply: boolean) {
  const store = await openStore(server.storeFolder ?? "");
  return await collectGarbage({ store, clock: systemClock, apply, keep: {} });
}

describe("retention", () => {
  test("comes from the request, then the profile; changes and null are accepted; invalid values are refused", async () => {
    const kept = { checkpoints: { keep_last: 7 } };
    const profile = profileSchema.parse({ name: "archive", backends: ["fake"], retention: kept });
    const profiles = new ProfileCatalog([{ profile, file: "test", bundled: false, overrides: undefined }]);
    const http = new HttpClient(await startTestServer({ profiles }));
    expect((await http.create({})).retention).toBeNull();
    expect((await http.create({ profile: "archive" })).retention).toEqual(kept);
    const own = { checkpoints: { keep_last: 1, hourly: 2 }, snapshots: { daily: 3 } };
    const { id, retention } = await http.create({ profile: "archive", retention: own });
    expect(retention).toEqual(own);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    expect((await http.get(id)).retention).toEqual(own);
    const reset = await http.call<SandboxRecord>("PATCH", `/v1/sandboxes/${id}`, { retention: null });
    expect(reset.body.retention).toBeNull();
    for (const wrong of [{ checkpoints: {} }, { checkpoints: { keep_last: 0 } }, { snapshots: { weekly: 1 } }]) {
      const refused = await http.call<ErrorAnswer>("PATCH", `/v1/sandboxes/${id}`, { retention: wrong });
      expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining("retention")]);
    }
  });

  test("of a sandbox is kept by its owner after each save, and the server's of others", async () => {
    const { server, api } = await start({ retention: { checkpoints: { keep_last: 1 } } });
    const { id } = await api.http.create({ retention: { checkpoints: { keep_last: 3 } } });
    const other = await api.http.create({});
    await saveTimes(api.http, id, 5);
    await saveTimes(api.http, other.id, 3);
    await expect.poll(() => checkpointsOf(server, id)).toBe(3);
    await expect.poll(() => checkpointsOf(server, other.id)).toBe(1);
  });

  test("of snapshots removes old ones that are unnamed, unpinned and unneeded", async () => {
    const { api } = await start();
    const { id } = await api.http.create({ retention: { snapshots: { keep_last: 1 } } });
    const take = async (body = {}): Promise<SnapshotInfo> => {
      return (await api.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`, body)).body;
    };
    const named = await take({ name: "before" });
    const needed = await take();
    await api.call("POST", `/v1/snapshots/${needed.id}/restore`, {});
    const pinned = await take();
    const patched = await api.call<SnapshotInfo>("PATCH", `/v1/snapshots/${pinned.id}`, { pinned: true });
    expect(patched.body.pinned).toBe(true);
    const old = await take();
    const newest = await take();
    await expect.poll(async () => (await api.refused("GET", `/v1/snapshots/${old.id}`))[0]).toBe(404);
    for (const stays of [named, needed, pinned, newest]) expect((await api.get(stays.id)).id).toBe(stays.id);
  });

  test("of a server without a rule for snapshots keeps all of them", async () => {
    const { server, api } = await start();
    const { id } = await api.http.create({});
    for (let time = 0; time < 5; time += 1) await api.take(id);
    await server.manager.drain();
    expect(await server.durable.snapshots.list()).toHaveLength(5);
  });

  test("is previewed by a dry run and applied by a collection, for sandboxes that nobody runs", async () => {
    const { server, api } = await start({ retention: { checkpoints: { keep_last: 5 } } });
    const { id } = await api.http.create({});
    await saveTimes(api.http, id, 3);
    for (let time = 0; time < 3; time += 1) await api.take(id);
    await api.call("POST", `/v1/sandboxes/${id}/checkpoint`);
    const rules = { checkpoints: { keep_last: 1 }, snapshots: { keep_last: 2 } };
    await api.call("PATCH", `/v1/sandboxes/${id}`, { retention: rules });
    const foreseen = await collectAt(server, false);
    expect(foreseen.garbage.filter(({ kind }) => kind === "past-retention")).toHaveLength(3);
    expect(foreseen.garbage.filter(({ kind }) => kind === "old-snapshot")).toHaveLength(1);
    expect(await checkpointsOf(server, id)).toBe(4);
    expect(await collectAt(server, true)).toEqual(foreseen);
    expect(await checkpointsOf(server, id)).toBe(1);
    expect(await server.durable.snapshots.list()).toHaveLength(2);
    expect((await api.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`)).body.state).toBe("running");
  });
});

describe("a pinned snapshot", () => {
  test("is not removed until it is unpinned, and the refusal explains how", async () => {
    const { server, api } = await start();
    const { id: sandboxId } = await api.http.create({});
    const { id } = await api.take(sandboxId);
    await api.call("PATCH", `/v1/snapshots/${id}`, { pinned: true });
    const refused = await api.call("DELETE", `/v1/snapshots/${id}`);
    expect(refused.body.error).toMatchObject({ code: "snapshot_pinned", hint: expect.stringContaining("unpin") });
    await collectAt(server, true);
    expect(await api.get(id)).toMatchObject({ pinned: true, state: "ready" });
    await api.call("PATCH", `/v1/snapshots/${id}`, { pinned: false });
    expect((await api.call("DELETE", `/v1/snapshots/${id}`)).status).toBe(204);
  });
});
