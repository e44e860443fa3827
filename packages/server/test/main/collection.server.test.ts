import { randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { ImageStore } from "../../src/checkpoints/image-store.ts";
import { UnpackedImages } from "../../src/checkpoints/unpacked-images.ts";
import { CollectorSeat } from "../../src/collection/collector-seat.ts";
import { startCollection } from "../../src/main/collection.ts";
import { parseConfig } from "../../src/main/config.ts";
import { SnapshotClient } from "../gateway/http/snapshot-client.ts";
import { stateOf } from "../checkpoints/block-image/block-images.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";

function seatAt(store: MemoryStore): CollectorSeat {
  return new CollectorSeat(store, { me: () => "here", isDead: async () => false });
}

function configured(collectEvery: string) {
  const env = { SANDBOXER_COLLECT_EVERY: collectEvery, SANDBOXER_STORE: `/tmp/${randomUUID()}` };
  return parseConfig({ flags: {}, env, homeDirectory: "/home/somebody", serving: false });
}

test("a deleted sandbox and a deleted snapshot cause a check of packs, and a save a smaller one", async () => {
  const server = await startTestServer();
  const store = new MemoryStore();
  const collection = startCollection(
    configured("1h"),
    { store, images: undefined, seat: seatAt(store) },
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

/** Two images, and a local copy of each in the folder. */
async function twoCopies() {
  const { manager } = await startTestServer();
  const store = new MemoryStore();
  const folder = await temporaryFolder();
  const images = new ImageStore(store, { unpacked: new UnpackedImages(folder, 1024 ** 3) });
  const label = { sandboxId: randomUUID(), createdAt: new Date(0).toISOString(), parent: null };
  for (const key of ["a/1.img", "a/2.img"])
    await images.save([key], await stateOf({ memory: Buffer.from(key) }), label);
  expect(await readdir(folder)).toHaveLength(2);
  return { manager, store, folder, images, log: pino({ enabled: false }) };
}

test("off is off, except for local copies of images that were removed", async () => {
  const { manager, store, folder, images, log } = await twoCopies();
  await store.delete("a/1.img");
  expect(
    startCollection(configured("off"), { store, images, seat: seatAt(store) }, manager.events, log),
  ).toBeUndefined();
  await expect.poll(async () => await readdir(folder)).toHaveLength(1);
});

test("a server that is not the collector removes its local copies of images that were removed", async () => {
  const { manager, store, folder, images, log } = await twoCopies();
  await new CollectorSeat(store, { me: () => "elsewhere", isDead: async () => false }).look(false);
  const config = { ...configured("1h"), collectEveryMs: 100 };
  const forget = vi.spyOn(images, "forgetCopiesOfRemoved");
  const collection = startCollection(config, { store, images, seat: seatAt(store) }, manager.events, log);
  // The copies that are removed at the start.
  await forget.mock.results[0]?.value;
  await store.delete("a/1.img");
  await expect.poll(async () => await readdir(folder)).toHaveLength(1);
  await collection?.close();
});
