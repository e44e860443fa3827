import { expect, it, vi } from "vitest";
import { Instances, type InstancesOptions } from "../../src/lease/instances.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { countInFlight } from "./in-flight.ts";
import { FakeClock } from "./fake-clock.ts";
import { FaultyStore } from "./faulty-store.ts";

const TTL_MS = 15_000;

async function register(
  store: ObjectStore,
  clock: FakeClock,
  options: Partial<InstancesOptions> = {},
): Promise<Instances> {
  const unexpected = (what: unknown): void => {
    throw new Error(`unexpected: ${String(what)}`);
  };
  return await Instances.register({
    store,
    clock,
    ttlMs: TTL_MS,
    url: "http://here:1",
    onFenced: unexpected,
    onError: unexpected,
    ...options,
  });
}

const watched: { readonly inFlight: () => number }[] = [];

async function openTemporaryStore(): Promise<ObjectStore> {
  const counted = countInFlight(await DirectoryStore.open(await temporaryFolder()));
  watched.splice(0, watched.length, counted);
  return counted.store;
}

async function recordOf(store: ObjectStore, instanceId: string): Promise<Record<string, unknown>> {
  const cell = await store.readCell(`instances/${instanceId}.json`);
  return JSON.parse(Buffer.from(cell?.body ?? "{}").toString()) as Record<string, unknown>;
}

/** Lets time pass in steps that are short beside every length of time that matters, and lets each take its effect. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  const STEP_MS = 250;
  for (let left = ms; left > 0; left -= STEP_MS) {
    clock.advance(STEP_MS);
    await quiet();
  }
}

/** Until no store has anything under way, and nothing comes of the answers. */
async function quiet(): Promise<void> {
  for (let still = 0; still < 3; still++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (watched.some(({ inFlight }) => inFlight() > 0)) still = 0;
  }
}

it("renews its record while it is alive, and marks it dead when it stops cleanly", async () => {
  const store = await openTemporaryStore();
  const clock = new FakeClock();
  const instance = await register(store, clock);
  expect(await recordOf(store, instance.instanceId)).toMatchObject({ beat: 1, url: "http://here:1", ttl_ms: TTL_MS });
  await pass(clock, TTL_MS);
  expect(await recordOf(store, instance.instanceId)).toMatchObject({ beat: 4 });
  expect(await instance.isDead(instance.instanceId)).toBe(false);
  await instance.close();
  await instance.close();
  expect(await recordOf(store, instance.instanceId)).toMatchObject({ dead: true, by: instance.instanceId });
});

it("declares another dead only after its record did not change for 1.5 ttl on this clock", async () => {
  const store = await openTemporaryStore();
  const silentClock = new FakeClock();
  const fenced = vi.fn<(reason: string) => void>();
  const silent = await register(store, silentClock, { onFenced: fenced });
  const clock = new FakeClock();
  const watcher = await register(store, clock);
  expect(await watcher.urlOf(silent.instanceId)).toBe("http://here:1");
  await quiet();
  await pass(clock, 22_000);
  expect(await watcher.isDead(silent.instanceId)).toBe(false);
  await pass(clock, 5_000);
  expect(await watcher.isDead(silent.instanceId)).toBe(true);
  expect(await watcher.urlOf(silent.instanceId)).toBeUndefined();
  expect(fenced).not.toHaveBeenCalled();
  // It continues, finds out, and runs on under another id.
  const { instanceId } = silent;
  silentClock.advance(TTL_MS / 3);
  await vi.waitFor(() => expect(fenced).toHaveBeenCalledOnce(), { timeout: 60_000 });
  expect(fenced.mock.lastCall?.[0]).toContain(watcher.instanceId);
  expect(await recordOf(store, instanceId)).toMatchObject({ dead: true, by: watcher.instanceId });
  await vi.waitFor(() => expect(silent.frozen).toBe(false), { timeout: 60_000 });
  expect(silent.instanceId).not.toBe(instanceId);
  expect(await watcher.isDead(silent.instanceId)).toBe(false);
  await silent.close();
  await watcher.close();
});

it("keeps servers that renew alive, however often it looks", async () => {
  const store = await openTemporaryStore();
  const clock = new FakeClock();
  const first = await register(store, clock);
  const second = await register(store, clock);
  await pass(clock, 4 * TTL_MS);
  expect(await first.isDead(second.instanceId)).toBe(false);
  expect(await second.isDead(first.instanceId)).toBe(false);
  await Promise.all([first.close(), second.close()]);
});

it("treats a missing record as dead, and leaves a tombstone that nobody can register under", async () => {
  const store = await openTemporaryStore();
  const instance = await register(store, new FakeClock());
  expect(await instance.isDead("11111111-0000-4000-8000-000000000000")).toBe(true);
  const key = "instances/11111111-0000-4000-8000-000000000000.json";
  expect((await store.swapCell(key, undefined, Buffer.from("{}"))).outcome).toBe("conflict");
  await instance.close();
});

it("can declare an instance dead", async () => {
  const store = await openTemporaryStore();
  const crashed = await register(store, new FakeClock());
  const instance = await register(store, new FakeClock());
  const onDied = vi.fn<(instanceId: string) => void>();
  instance.listen({ onDied });
  expect([await instance.isDead(crashed.instanceId), instance.knowsDead]).toEqual([false, false]);
  await instance.markDead(crashed.instanceId);
  await instance.markDead(crashed.instanceId);
  expect([await instance.isDead(crashed.instanceId), instance.knowsDead]).toEqual([true, true]);
  expect(onDied.mock.calls).toEqual([[crashed.instanceId]]);
  await instance.close();
});

it("leaves a record alone that it cannot read, and counts it as alive", async () => {
  const store = await openTemporaryStore();
  const clock = new FakeClock();
  await store.swapCell("instances/future.json", undefined, Buffer.from('{"format":2}'));
  const instance = await register(store, clock);
  await pass(clock, 3 * TTL_MS);
  expect(await instance.isDead("future")).toBe(false);
  await instance.close();
});

it("is not fenced by its own renewals whose answers were lost", async () => {
  const faulty = new FaultyStore(await openTemporaryStore());
  const clock = new FakeClock();
  const instance = await register(faulty.store, clock);
  for (let round = 0; round < 5; round++) {
    faulty.faults.push("lost_reply");
    await pass(clock, TTL_MS / 3);
  }
  expect(await recordOf(faulty.store, instance.instanceId)).toMatchObject({ beat: 6 });
  await instance.close();
});

it("freezes when no renewal is confirmed for 0.75 ttl, and thaws with the next", async () => {
  const faulty = new FaultyStore(await openTemporaryStore());
  const clock = new FakeClock();
  const instance = await register(faulty.store, clock);
  const heard: string[] = [];
  instance.listen({ onFreeze: () => heard.push("freeze"), onThaw: () => heard.push("thaw") });
  await pass(clock, TTL_MS);
  expect(heard).toEqual([]);
  faulty.faults.push(...Array.from({ length: 12 }, () => "lost_request" as const));
  // The last good renewal was sent 0 to 5 s ago; 11.25 s after it the freeze comes.
  await pass(clock, 6_000);
  expect({ heard: [...heard], frozen: instance.frozen }).toEqual({ heard: [], frozen: false });
  await pass(clock, 5_500);
  expect({ heard: [...heard], frozen: instance.frozen }).toEqual({ heard: ["freeze"], frozen: true });
  faulty.faults.length = 0;
  await pass(clock, 2_500);
  expect({ heard, frozen: instance.frozen }).toEqual({ heard: ["freeze", "thaw"], frozen: false });
  await instance.close();
});

it("is frozen right after a stall, before any timer has fired", async () => {
  const clock = new FakeClock();
  const instance = await register(await openTemporaryStore(), clock);
  expect(instance.frozen).toBe(false);
  clock.stall(0.75 * TTL_MS);
  expect(instance.frozen).toBe(true);
  await instance.close();
});

it("fences no server after the store was unavailable for longer than the lease: all freeze, and all continue", async () => {
  const store = await openTemporaryStore();
  const clock = new FakeClock();
  let away = false;
  const flaky = new Proxy<ObjectStore>(store, {
    get: (target, property) => {
      if (away && property === "listMarks") throw new Error("The store is away.");
      if (away) return () => Promise.reject(new Error("The store is away."));
      return Reflect.get(target, property) as unknown;
    },
  });
  const otherClock = new FakeClock();
  const instances = [
    await register(flaky, clock, { onError: () => {} }),
    await register(flaky, otherClock, { onError: () => {} }),
  ];
  const ids = instances.map(({ instanceId }) => instanceId);
  const passForBoth = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1_000) {
      await pass(clock, 1_000);
      await pass(otherClock, 1_000);
    }
  };
  await passForBoth(2 * TTL_MS);
  // The one has seen what the other wrote last.
  await pass(clock, TTL_MS / 3);
  away = true;
  await passForBoth(3 * TTL_MS);
  expect(instances.map(({ frozen }) => frozen)).toEqual([true, true]);
  away = false;
  // The one is back a whole ttl before the other.
  await pass(clock, TTL_MS);
  await passForBoth(TTL_MS);
  expect(instances.map(({ frozen }) => frozen)).toEqual([false, false]);
  expect(instances.map(({ instanceId }) => instanceId)).toEqual(ids);
  for (const instance of instances) await instance.close();
});

it("publishes what it says about itself, and reads others that say nothing or nonsense", async () => {
  const [store, clock] = [await openTemporaryStore(), new FakeClock()];
  const machines = { gvisor: { engines: ["1"] } };
  const speaking = await register(store, clock, { advert: { labels: { zone: "a" } } });
  const silent = await register(store, clock);
  const labelsOf = async (id: string): Promise<unknown> =>
    (await silent.servers()).find(({ instanceId }) => instanceId === id);
  expect(await labelsOf(speaking.instanceId)).toMatchObject({ labels: { zone: "a" }, machines: undefined });
  speaking.advertise({ labels: { zone: "a" }, machines });
  await pass(clock, TTL_MS / 2);
  expect(await recordOf(store, speaking.instanceId)).toMatchObject({ labels: { zone: "a" }, machines });
  expect(await labelsOf(speaking.instanceId)).toMatchObject({ machines, alive: true });
  expect(await labelsOf(silent.instanceId)).toMatchObject({ labels: undefined, here: true });
  const record = { format: 1, url: null, beat: 1, ttl_ms: TTL_MS, nonce: "n", labels: 7, machines: { gvisor: [] } };
  await store.swapCell("instances/strange.json", undefined, Buffer.from(JSON.stringify(record)));
  expect(await labelsOf("strange")).toMatchObject({ alive: true, labels: undefined, machines: undefined });
  await Promise.all([speaking.close(), silent.close()]);
});
