import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkpointKey, checkpointMs, checkpointName } from "../../src/checkpoints/checkpoint-names.ts";
import { readCondemned } from "../../src/checkpoints/packs/condemned.ts";
import { packKey } from "../../src/checkpoints/packs/pack-names.ts";
import { imageKey, recordKey } from "../../src/checkpoints/snapshot-record.ts";
import { changeCell } from "../../src/checkpoints/snapshot-cell.ts";
import { decodeSnapshot, type StoredSnapshot } from "../../src/checkpoints/snapshot-record.ts";
import { announcement, removeSnapshot } from "../../src/checkpoints/snapshot-save.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { PackSurveyor } from "../../src/collection/pack-survey.ts";
import { Instances } from "../../src/lease/instances.ts";
import { Ownership } from "../../src/lease/ownership.ts";
import { readHead } from "../../src/lease/stored-head.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { checkpoint, newSandbox } from "../lease/samples.ts";
import { collect } from "../store/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";
import { FORGETS_WHO_MAY_PUBLISH, type PlantedBug } from "./packs-bugs.ts";
import { Killed, killedAt, type ModelImage, packsOfModel, pageByPage, writeModel } from "./packs-world.ts";
import { type Burst, Turns, whenChanged } from "./turns.ts";

/** The actors. The first four write images; the fifth removes one that others started from. */
const [OWNER, HEIR, FORK, OTHER_FORK, REMOVER, COLLECTOR, OTHER_COLLECTOR] = [0, 1, 2, 3, 4, 5, 6] as const;
const ACTORS = 7;

interface Story {
  readonly bursts: readonly Burst[];
  /** Taken for dead from the start, which it does not know. */
  readonly dead: number | undefined;
  readonly lists: "at once" | "page by page";
  readonly killed: { readonly actor: number; readonly call: number } | undefined;
}

const storyArbitrary: fc.Arbitrary<Story> = fc.record({
  bursts: fc.array(fc.record({ actor: fc.nat({ max: ACTORS - 1 }), steps: fc.integer({ min: 1, max: 40 }) }), {
    minLength: 6,
    maxLength: 30,
  }),
  dead: fc.option(fc.constantFrom(OWNER, FORK), { nil: undefined }),
  lists: fc.constantFrom("at once", "page by page"),
  killed: fc.option(fc.record({ actor: fc.nat({ max: ACTORS - 1 }), call: fc.integer({ min: 1, max: 40 }) }), {
    nil: undefined,
  }),
});

async function server(store: ObjectStore, clock: FakeClock) {
  const options = { store, clock, ttlMs: 15_000, url: null, onFenced: () => {}, onError: () => {} };
  const instances = await Instances.register(options);
  return { store, instances, ownership: new Ownership(instances) };
}
type Server = Awaited<ReturnType<typeof server>>;

/** Saves a sandbox and publishes that, as its owner, and removes what was its state before. */
async function put({ store, instances, ownership }: Server, id: string, base: ModelImage | undefined): Promise<void> {
  const taken = (await collect(store.list(`${id}/checkpoints`))).map(({ key }) =>
    checkpointMs(key.split("/")[2] ?? ""),
  );
  const epoch = ownership.held(id)?.epoch ?? 0;
  const number = Math.max(0, ...taken.map((ms) => ms ?? 0)) + 1;
  await writeModel(store, instances.instanceId, checkpointKey(id, checkpointName(number)), base);
  await ownership.publishAndRelease({ id, epoch }, checkpoint(number));
  if (base?.imageKey.startsWith(id) === true) await store.delete(base.imageKey);
}

async function baseOf(store: ObjectStore, key: string): Promise<ModelImage> {
  return { imageKey: key, packs: (await packsOfModel(store, key)) ?? [] };
}

/** Takes a sandbox up where its head says, and puts it down again. */
async function takeAndPut(server: Server, id: string): Promise<void> {
  const head = await server.ownership.claim(id);
  await put(server, id, await baseOf(server.store, checkpointKey(id, head.checkpoint?.name ?? "")));
}

async function swap(store: ObjectStore, id: string, change: (present: StoredSnapshot | undefined) => StoredSnapshot) {
  await changeCell<StoredSnapshot>(store, { key: recordKey(id), decode: (body) => decodeSnapshot(id, body), change });
}

/** A snapshot of a sandbox that began with another one: announced, written, ready. */
async function saveSnapshot({ store, instances }: Server, base: ModelImage | undefined): Promise<string> {
  const snapshot = newSnapshot({ name: null });
  const { id } = snapshot;
  await swap(store, id, () => announcement(snapshot, instances.instanceId));
  await writeModel(store, instances.instanceId, imageKey(id), base);
  await swap(store, id, (present) => {
    if (present?.state !== "saving") throw new Error("It was collected meanwhile.");
    return { ...present, state: "ready" };
  });
  return id;
}

async function collectAll(store: ObjectStore, signal?: AbortSignal) {
  return await collectGarbage({
    store,
    clock: new FakeClock(),
    apply: true,
    ...(signal === undefined ? {} : { signal }),
    keep: { checkpoints: { keep_last: 1 } },
    packs: new PackSurveyor(packsOfModel),
  });
}

/** Every image that somebody can see, with all that it needs. */
async function check(store: MemoryStore, sandboxId: string): Promise<void> {
  const seen = [checkpointKey(sandboxId, (await readHead(store, sandboxId))?.checkpoint?.name ?? "")];
  for (const { key } of await collect(store.list("snapshots"))) {
    const id = key.split("/")[1] ?? "";
    const cell = key.endsWith("record.json") ? await store.readCell(recordKey(id)) : undefined;
    if (cell !== undefined && decodeSnapshot(id, cell.body).state === "ready") seen.push(imageKey(id));
  }
  for (const key of seen) {
    const packs = await packsOfModel(store, key);
    if (packs === undefined) throw new Error(`${key} is gone.`);
    const missing = packs.find((id) => !store.has(packKey(id)));
    if (missing !== undefined) throw new Error(`The pack ${missing} of ${key} is gone.`);
  }
}

async function play({ bursts, dead, lists, killed }: Story, bug: PlantedBug = {}): Promise<void> {
  const [store, turns, clock, sandboxId] = [new MemoryStore(), new Turns(), new FakeClock(), randomUUID()];
  const death = new AbortController();
  const servers: Server[] = [];
  for (const actor of [OWNER, HEIR, FORK, OTHER_FORK]) {
    const own = turns.storeOf(actor, store);
    servers.push(await server(bug.writer?.(own) ?? own, clock));
  }
  const serverOf = (actor: number): Server => {
    const found = servers[actor];
    if (found === undefined) throw new Error(`${actor} is no server.`);
    return killed?.actor === actor ? { ...found, store: killedAt(found.store, killed.call) } : found;
  };
  const storeOf = (actor: number): ObjectStore => {
    const whole = turns.storeOf(actor, store);
    const own = lists === "at once" ? whole : pageByPage(whole);
    return killed?.actor === actor ? killedAt(own, killed.call, death) : own;
  };
  // A sandbox that has been saved and is owned, and a snapshot that two others began with.
  await servers[OWNER]?.ownership.create(sandboxId, newSandbox());
  await put(serverWith(servers[OWNER], store), sandboxId, undefined);
  await servers[OWNER]?.ownership.claim(sandboxId);
  const first = await baseOf(store, checkpointKey(sandboxId, checkpointName(1)));
  const source = await saveSnapshot(serverWith(servers[FORK], store), first);
  const base = await baseOf(store, imageKey(source));
  if (dead !== undefined) await servers[HEIR]?.instances.markDead(servers[dead]?.instances.instanceId ?? "");

  const collects = async (actor: number): Promise<void> => {
    const own = storeOf(actor);
    await collectAll(bug.collector?.(own) ?? own, killed?.actor === actor ? death.signal : undefined);
  };
  const deeds: Readonly<Record<number, () => Promise<unknown>>> = {
    [OWNER]: async () => await put(serverOf(OWNER), sandboxId, first),
    [HEIR]: async () => await takeAndPut(serverOf(HEIR), sandboxId),
    [FORK]: async () => await saveSnapshot(serverOf(FORK), base),
    [OTHER_FORK]: async () => await saveSnapshot(serverOf(OTHER_FORK), base),
    [REMOVER]: async () => {
      const own = storeOf(REMOVER);
      await swap(own, source, (present) => ({ ...(present as StoredSnapshot), state: "removing", removed_by: "" }));
      await removeSnapshot(own, source);
    },
    [COLLECTOR]: async () => await collects(COLLECTOR),
    [OTHER_COLLECTOR]: async () => {
      for (let runs = 0; runs < 2; runs++) await collects(OTHER_COLLECTOR);
    },
  };
  const mayFail = (actor: number): boolean => actor === dead || actor === killed?.actor || actor === HEIR;
  const actors = Object.entries(deeds).map(([actor, deed]) => async (): Promise<void> => {
    try {
      await deed();
    } catch (error) {
      if (!mayFail(Number(actor)) && !(error instanceof Killed)) throw error;
    }
  });
  await turns.run(
    actors,
    bursts,
    whenChanged(store, async () => await check(store, sandboxId)),
  );
  if (bug.writer === undefined && bug.collector === undefined) await endWithNothingLeft(store, servers, sandboxId);
  for (const { instances } of servers) await instances.close();
}

function serverWith(server: Server | undefined, store: ObjectStore): Server {
  if (server === undefined) throw new Error("There is no such server.");
  return { ...server, store };
}

/** Once every server is dead and nobody writes, all that is left is needed. */
async function endWithNothingLeft(store: MemoryStore, servers: readonly Server[], sandboxId: string): Promise<void> {
  const last = await Instances.register({ ...OPTIONS, store, clock: new FakeClock() });
  for (const { instances } of servers) await last.markDead(instances.instanceId);
  for (let runs = 0; runs < 3; runs++) await collectAll(store);
  const needed = new Set<string>();
  for (const { key } of await collect(store.list("")))
    if (key.endsWith(".img")) for (const id of (await packsOfModel(store, key)) ?? []) needed.add(packKey(id));
  expect((await collect(store.list("packs"))).map(({ key }) => key).toSorted()).toEqual([...needed].toSorted());
  expect(await collect(store.list("pins"))).toEqual([]);
  // A collector that was killed may have condemned what an image names that came to be seen in between: that one stays.
  for (const { key, packs = [] } of await readCondemned(store))
    expect(packs.some((id) => needed.has(packKey(id))) ? undefined : key).toBeUndefined();
  await check(store, sandboxId);
  await last.close();
}

const OPTIONS = { ttlMs: 15_000, url: null, onFenced: () => {}, onError: () => {} };

/** A collector condemns a pack, is killed, and an image that names it is there after all. */
const CONDEMNED_BUT_NEEDED: Story = {
  bursts: [
    { actor: COLLECTOR, steps: 3 },
    { actor: FORK, steps: 9 },
    { actor: OWNER, steps: 1 },
    { actor: COLLECTOR, steps: 30 },
    { actor: OWNER, steps: 1 },
    { actor: OWNER, steps: 1 },
  ],
  dead: undefined,
  lists: "page by page",
  killed: { actor: COLLECTOR, call: 19 },
};

/** A collector that does not know whether its last write arrived, and is killed before it can ask. */
const KILLED_IN_A_SWAP: Story = {
  bursts: [
    [FORK, 58],
    [HEIR, 20],
    [COLLECTOR, 2],
    [FORK, 12],
    [COLLECTOR, 15],
    [HEIR, 28],
    [OTHER_COLLECTOR, 26],
  ].map(([actor = 0, steps = 0]) => ({ actor, steps })),
  dead: OWNER,
  lists: "page by page",
  killed: { actor: COLLECTOR, call: 16 },
};

describe("packs of images that servers publish", () => {
  it("stay while an image that can be seen needs them, and no longer", async () => {
    await fc.assert(
      fc.asyncProperty(storyArbitrary, async (story) => await play(story)),
      { numRuns: 100, examples: [[CONDEMNED_BUT_NEEDED], [KILLED_IN_A_SWAP]] },
    );
  });

  it("a collector that does not check whether a dead server may publish is caught", async () => {
    // It begins to save; one collector takes its pin, the other one what it had pinned; and it publishes.
    const steps = [20, 200, 400].map((max) => fc.integer({ min: 1, max }));
    const planted = fc.asyncProperty(fc.tuple(...steps), async (counts) => {
      const bursts = [OWNER, COLLECTOR, OTHER_COLLECTOR].map((actor, index) => ({ actor, steps: counts[index] ?? 0 }));
      await play({ bursts, dead: OWNER, killed: undefined, lists: "at once" }, FORGETS_WHO_MAY_PUBLISH);
    });
    const { failed, errorInstance } = await fc.check(planted, {
      numRuns: 3_000,
      endOnFailure: true,
      seed: 10,
    });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toMatch(/is gone/);
  });
});
