import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { MemoryStore } from "../collection/memory-store.ts";
import { countedStore } from "../store/counted-store.ts";
import { encodeRecord, instanceKey, liveRecord } from "../../src/lease/liveness-record.ts";
import { FakeClock } from "./fake-clock.ts";
import { measureFleet } from "./fleet.ts";
import { newSandbox } from "./samples.ts";
import { instance } from "./test-instances.ts";

it("ten servers with 100 sandboxes each make fewer than 3 reads per second each", async () => {
  const { perSecond } = await measureFleet({ servers: 10, heldEach: 100, idleMs: 60_000 });
  expect(perSecond.get).toBeLessThan(10 * 3);
  expect(perSecond.list).toBeLessThan(10 * 0.25);
  expect(perSecond.put).toBeLessThan(10 * 0.25);
});

it("reads do not grow with the square of the servers", async () => {
  const reads = async (servers: number): Promise<number> =>
    (await measureFleet({ servers, heldEach: 0, idleMs: 60_000 })).perSecond.get / servers;
  expect(await reads(24)).toBeLessThan(1.2 * (await reads(8)));
});

it("a ring for an unnamed sandbox of 1,000 never has more than 200 requests at once", async () => {
  const clock = new FakeClock();
  const { store, inFlight } = countedStore(new MemoryStore(), async () => await setImmediate());
  const owner = await instance(store, { clock });
  const ids = Array.from({ length: 1_000 }, () => randomUUID());
  await Promise.all(ids.map((id) => owner.create(id, newSandbox(), { isFresh: true })));
  expect(inFlight.most).toBeLessThanOrEqual(200);
  // As a server of an earlier release rings.
  await store.swapCell(`bells/${owner.name}.json`, undefined, Buffer.from(`{"format":1,"nonce":"1"}`));
  inFlight.most = 0;
  clock.advance(1_000);
  await expect.poll(() => inFlight.most).toBeGreaterThan(100);
  await expect.poll(() => inFlight.now).toBe(0);
  expect(inFlight.most).toBeLessThanOrEqual(200);
});

it("a ring for a named sandbox reads the head of that one", async () => {
  const clock = new FakeClock();
  const { store, counts } = countedStore(new MemoryStore());
  const owner = await instance(store, { clock });
  const ids = Array.from({ length: 50 }, () => randomUUID());
  for (const id of ids) await owner.create(id, newSandbox(), { isFresh: true });
  const newcomer = await instance(store, { clock: new FakeClock() });
  const wanted: string[] = [];
  owner.instances.listen({ onWanted: (id) => wanted.push(id) });
  const [id = ""] = ids;
  const claim = newcomer.claim(id, { handoffTimeoutMs: 60_000 });
  void claim.catch(() => {});
  await expect.poll(async () => (await store.readCell(`bells/${owner.name}.json`)) !== undefined).toBe(true);
  const before = counts.get;
  clock.advance(1_000);
  await expect.poll(() => wanted).toEqual([id]);
  expect(counts.get - before).toBeLessThan(10);
  await owner.release({ id, epoch: 1 });
});

it("a live server is listed without reading its record, and one that stopped cleanly is detected at once", async () => {
  const { store, counts } = countedStore(new MemoryStore());
  const watcher = await instance(store, { clock: new FakeClock() });
  const others = [await instance(store, { clock: new FakeClock() }), await instance(store, { clock: new FakeClock() })];
  expect((await watcher.instances.servers()).filter(({ alive }) => alive)).toHaveLength(3);
  const before = { ...counts };
  await watcher.instances.servers();
  expect(counts).toMatchObject({ get: before.get, list: before.list + 1 });
  await others[0]?.instances.close();
  const servers = await watcher.instances.servers();
  expect(servers.find(({ instanceId }) => instanceId === others[0]?.name)).toMatchObject({ alive: false });
  expect(servers.find(({ instanceId }) => instanceId === others[1]?.name)).toMatchObject({ alive: true });
});

it("a server that starts beside 400 others never has more than 200 requests at once", async () => {
  const { store, counts, inFlight } = countedStore(new MemoryStore(), async () => await setImmediate());
  for (let number = 0; number < 400; number++) {
    const id = randomUUID();
    await store.swapCell(instanceKey(id), undefined, encodeRecord(liveRecord(null, 1, 15_000)));
  }
  await instance(store, { clock: new FakeClock() });
  await expect.poll(() => counts.get).toBeGreaterThanOrEqual(400);
  expect(inFlight.most).toBeLessThanOrEqual(200);
});
