import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { expect, test } from "vitest";
import { startCollection } from "../../src/main/collection.ts";
import { parseConfig } from "../../src/main/config.ts";
import { SnapshotClient } from "../http/snapshot-client.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { startTestServer } from "../websocket/support/test-server.ts";

function configured(collectEvery: string) {
  const env = { SANDBOXER_COLLECT_EVERY: collectEvery, SANDBOXER_STORE: `/tmp/${randomUUID()}` };
  return parseConfig({ flags: {}, env, homeDirectory: "/home/somebody", serving: false });
}

test("a destroyed sandbox and a removed snapshot are followed by a look for packs, and so is a save, but for less", async () => {
  const server = await startTestServer();
  const collection = startCollection(
    configured("1h"),
    new MemoryStore(),
    server.manager.events,
    pino({ enabled: false }),
  );
  if (collection === undefined) throw new Error("It is on.");
  let [removals, saves] = [0, 0];
  collection.imagesRemoved = () => (removals += 1);
  collection.imageReplaced = () => (saves += 1);
  const api = new SnapshotClient(server);
  const { id } = await api.http.create({});
  const snapshot = await api.take(id);
  expect([removals, saves]).toEqual([0, 0]);
  await api.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  expect([removals, saves]).toEqual([0, 1]);
  await api.remove(snapshot.id);
  expect(removals).toBe(1);
  await api.call("DELETE", `/v1/sandboxes/${id}`);
  expect([removals, saves]).toEqual([2, 1]);
  await collection.close();
});

test("off is off", async () => {
  const { manager } = await startTestServer();
  expect(
    startCollection(configured("off"), new MemoryStore(), manager.events, pino({ enabled: false })),
  ).toBeUndefined();
});
