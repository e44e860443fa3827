import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RemovedData } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { ObjectStore } from "../../../src/store/store.ts";
import { replaced } from "../../collection/planted-bugs.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServerOptions } from "../../../../../test/kit/server/test-server.ts";
import { SnapshotClient } from "./snapshot-client.ts";

/** Too much for the image itself, and not to be compressed. */
const NOISE = randomBytes(400_000);
const WITHIN_MS = 10_000;
const BYTES = { "content-type": "application/octet-stream" };

async function startFilled(options: TestServerOptions = {}) {
  const server = await startTestServer(options);
  const api = new SnapshotClient(server);
  const { id, token } = await api.http.create();
  await fill(api, id);
  const packs = async (): Promise<readonly string[]> => {
    const names = await readdir(join(server.storeFolder ?? "", "packs"), { recursive: true }).catch(() => []);
    return names.filter((name) => name.endsWith(".pack"));
  };
  const save = async (): Promise<void> => {
    await api.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
  };
  const remove = async () => (await api.call<RemovedData>("DELETE", `/v1/sandboxes/${id}`)).body;
  return { server, api, id, token, packs, save, remove };
}

async function fill({ server }: SnapshotClient<{ httpUrl: string }>, id: string, bytes = NOISE): Promise<void> {
  const url = `${server.httpUrl}/v1/sandboxes/${id}/files?path=/workspace/noise&parents=true`;
  expect((await fetch(url, { method: "PUT", headers: BYTES, body: new Uint8Array(bytes) })).status).toBe(204);
}

/** Notes the folders that are listed. A collection lists the whole store, or all packs. */
function noting(lists: string[]): (store: ObjectStore) => ObjectStore {
  return (store) =>
    replaced(store, {
      list: (folder) => {
        lists.push(folder);
        return store.list(folder);
      },
    });
}

test("data that only one sandbox used is removed with it, without a list of the store", async () => {
  const lists: string[] = [];
  const { api, id, save, packs, remove } = await startFilled({ wrapStore: noting(lists) });
  await save();
  await fill(api, id, randomBytes(400_000));
  await save();
  expect(await packs()).toHaveLength(2);
  lists.splice(0);
  const removed = await remove();
  expect(removed.shared_bytes).toBe(0);
  expect(removed.removed_bytes).toBeGreaterThan(800_000);
  await eventually("its packs are gone", async () => (await packs()).length === 0, WITHIN_MS);
  expect(lists.filter((folder) => folder === "" || folder === "packs")).toEqual([]);
});

test("data that a snapshot shares stays, and the snapshot can be restored", async () => {
  const { api, id, save, packs, remove } = await startFilled();
  await save();
  const { id: snapshotId } = await api.take(id);
  await fill(api, id, randomBytes(500_000));
  await save();
  const removed = await remove();
  expect(removed.shared_bytes).toBeGreaterThan(400_000);
  expect(removed.shared_bytes).toBeLessThan(500_000);
  expect(removed.removed_bytes).toBeGreaterThan(500_000);
  await eventually("the packs of its own are gone", async () => (await packs()).length === 1, WITHIN_MS);
  const restored = await api.restore(snapshotId);
  const file = await fetch(`${api.server.httpUrl}/v1/sandboxes/${restored.id}/files?path=/workspace/noise`);
  expect(Buffer.from(await file.arrayBuffer()).equals(NOISE)).toBe(true);
});

test("data that only a snapshot used is removed with it", async () => {
  const { api, id, packs } = await startFilled();
  const { id: snapshotId } = await api.take(id);
  expect(await packs()).toHaveLength(1);
  await api.remove(snapshotId);
  expect(await packs()).toEqual([]);
});

test("while a server runs that does not know of owners, packs have none, and wait for a collection", async () => {
  const { server, save, packs, remove } = await startFilled();
  await server.instances.store.swapCell(
    "instances/00000000-0000-4000-8000-000000000000.json",
    undefined,
    Buffer.from(JSON.stringify({ format: 1, url: null, beat: 1, ttl_ms: 600_000, nonce: "x" })),
  );
  await save();
  expect(await packs()).toEqual([expect.stringMatching(/^[0-9a-f-]{36}-0\.pack$/)]);
  expect((await remove()).shared_bytes).toBeGreaterThan(400_000);
  await server.drain();
  expect(await packs()).toHaveLength(1);
});

test("a client that kills its sandbox gets a message, if it asked for extensions", async () => {
  for (const extensions of [true, false]) {
    const { server, id, token, save } = await startFilled();
    await save();
    const client = server.attach(id, `?sandbox_token=${token}`, { extensions });
    await client.until("RUNNING");
    await client.send({ action: "kill_sandbox" }).untilClosed();
    const told = { event: "status_update", status: "SANDBOX_DELETED" };
    const more = { removed_bytes: expect.any(Number), shared_bytes: 0 };
    expect(client.events).toContainEqual(extensions ? { ...told, ...more } : told);
  }
});
