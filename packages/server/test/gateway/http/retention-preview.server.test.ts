import type { RetentionPreview, SnapshotInfo } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

const ALL = { checkpoints: { keep_last: 100 } };

async function start() {
  const server = await startTestServer({ retention: ALL });
  const http = new HttpClient(server);
  const preview = async (id: string, query = ""): Promise<RetentionPreview> =>
    (await http.call<RetentionPreview>("GET", `/v1/sandboxes/${id}/retention${query}`)).body;
  const save = async (id: string): Promise<void> => {
    const saved = await http.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
    expect(saved).toMatchObject({ status: 200, body: { id } });
  };
  const snapshot = async (id: string, body = {}): Promise<SnapshotInfo> =>
    (await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${id}/snapshot`, body)).body;
  return { server, http, preview, save, snapshot };
}

test("lists removed and kept states, by its own rules, the server's, or others, and removes nothing", async () => {
  const { server, http, preview, save, snapshot } = await start();
  const { id } = await http.create({ retention: { checkpoints: { keep_last: 2 } } });
  await http.call("PATCH", `/v1/sandboxes/${id}`, { retention: null });
  for (let time = 0; time < 4; time += 1) await save(id);
  const named = await snapshot(id, { name: "before" });
  const needed = await snapshot(id);
  await http.call("POST", `/v1/snapshots/${needed.id}/restore`, {});
  const pinned = await snapshot(id);
  await http.call("PATCH", `/v1/snapshots/${pinned.id}`, { pinned: true });
  const old = await snapshot(id);
  const newest = await snapshot(id);

  const asItIs = await preview(id);
  expect(asItIs).toMatchObject({ retention: ALL, checkpoints: { kept: 4, going: [] }, freed_bytes: 0 });
  expect(asItIs.snapshots).toEqual({ kept: 5, named: 1, pinned: 1, in_use: 0, going: [] });

  const tight = await preview(id, "?keep_checkpoints=1&keep_snapshots=last%3D1");
  expect(tight.retention).toEqual({ checkpoints: { keep_last: 1 }, snapshots: { keep_last: 1 } });
  expect([tight.checkpoints.kept, tight.checkpoints.going.length]).toEqual([1, 3]);
  expect(tight.snapshots).toMatchObject({ kept: 4, named: 1, pinned: 1, in_use: 1 });
  expect(tight.snapshots.going).toEqual([{ name: old.id, created_at: old.created_at }]);
  expect(tight.freed_bytes).toBeGreaterThan(0);
  expect((await server.durable.checkpoints.list(id))?.length).toBe(4);
  for (const { id: there } of [named, needed, pinned, old, newest])
    expect((await http.call("GET", `/v1/snapshots/${there}`)).status).toBe(200);

  await http.call("PATCH", `/v1/sandboxes/${id}`, { retention: tight.retention });
  expect(await preview(id)).toEqual(tight);
  expect((await preview(id, "?keep_checkpoints=server&keep_snapshots=server")).checkpoints).toEqual(asItIs.checkpoints);
});

test("refuses nonsense, and knows no sandbox that has nothing in the store", async () => {
  const { http } = await start();
  const { id } = await http.create({});
  const wrong = await http.call<ErrorAnswer>("GET", `/v1/sandboxes/${id}/retention?keep_checkpoints=weekly%3D1`);
  expect([wrong.status, wrong.body.error.message]).toEqual([400, expect.stringContaining("keep_checkpoints")]);
  const unknown = await http.call<ErrorAnswer>("GET", `/v1/sandboxes/${crypto.randomUUID()}/retention`);
  expect([unknown.status, unknown.body.error.code]).toEqual([404, "sandbox_not_found"]);
});
