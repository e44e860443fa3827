import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { BackgroundCollection } from "../../src/collection/background-collection.ts";
import { CollectorSeat } from "../../src/collection/collector-seat.ts";
import { Instances } from "../../src/lease/instances.ts";
import { Ownership } from "../../src/lease/ownership.ts";
import { GuardedStore } from "../../src/store/guarded-store.ts";
import { writeStoreId } from "../../src/store/marker.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { countedStore, type CountedStore, type RequestCounts } from "../store/counted-store.ts";
import { FakeClock } from "./fake-clock.ts";
import { newSandbox } from "./samples.ts";

const TTL_MS = 15_000;
const STEP_MS = 250;
const COLLECT_EVERY_MS = 6 * 3_600_000;

export interface FleetOptions {
  readonly servers: number;
  readonly heldEach: number;
  /** How long nothing happens, on the servers' clocks. */
  readonly idleMs: number;
}

export interface FleetFigures {
  /** Requests of all servers together. */
  readonly perSecond: RequestCounts;
  readonly mostInFlight: number;
  /** The share of one core, for all servers together. */
  readonly cpuShare: number;
}

/**
 * The requests of servers that hold sandboxes while nothing happens: their own leases, collections and markers, on a
 * store in memory that counts. Time passes as fast as the work is done.
 */
export async function measureFleet({ servers, heldEach, idleMs }: FleetOptions): Promise<FleetFigures> {
  const clock = new FakeClock();
  const counted = countedStore(new MemoryStore());
  const storeId = await writeStoreId(counted.store);
  const ends: (() => Promise<void>)[] = [];
  for (let started = 0; started < servers; started++) {
    ends.push(await startServer(clock, counted, storeId, heldEach));
    // They do not renew together.
    clock.advance(TTL_MS / 3 / servers);
    await setImmediate();
  }
  await pass(clock, 2 * TTL_MS);
  const before = { ...counted.counts };
  const cpu = process.cpuUsage();
  counted.inFlight.most = 0;
  await pass(clock, idleMs);
  const { user, system } = process.cpuUsage(cpu);
  const after = { ...counted.counts };
  await Promise.all(ends.map((end) => end()));
  const rate = (kind: keyof RequestCounts): number => ((after[kind] - before[kind]) * 1000) / idleMs;
  return {
    perSecond: { get: rate("get"), put: rate("put"), list: rate("list"), delete: rate("delete") },
    mostInFlight: counted.inFlight.most,
    cpuShare: (user + system) / 1000 / idleMs,
  };
}

async function startServer(
  clock: FakeClock,
  { store: counted }: CountedStore,
  storeId: string,
  held: number,
): Promise<() => Promise<void>> {
  const store = new GuardedStore(counted, storeId);
  const fail = (error: unknown): void => {
    throw error instanceof Error ? error : new Error(String(error));
  };
  const url = `http://${randomUUID()}.example`;
  const instances = await Instances.register({ store, clock, ttlMs: TTL_MS, url, onFenced: fail, onError: fail });
  const ownership = new Ownership(instances);
  for (let made = 0; made < held; made++) await ownership.create(randomUUID(), newSandbox(), { isFresh: true });
  const collection = new BackgroundCollection({
    store,
    clock,
    everyMs: COLLECT_EVERY_MS,
    seat: new CollectorSeat(store, {
      me: () => ownership.instanceId,
      isDead: async (instanceId) => await ownership.isDead(instanceId),
    }),
    onCollected: () => {},
    onError: fail,
  });
  return async () => {
    await collection.close();
    await instances.close();
  };
}

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= STEP_MS) {
    clock.advance(STEP_MS);
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }
}
