import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { removeOwnPacks } from "../../src/checkpoints/packs/owned-packs.ts";
import { packKey } from "../../src/checkpoints/packs/pack-names.ts";
import { collectPacks } from "../../src/collection/collect-packs.ts";
import { PackSurveyor } from "../../src/collection/pack-survey.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { collect } from "../store/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";
import { PACK_BUGS, type PlantedBug } from "./packs-bugs.ts";
import { Killed, killedAt, type ModelImage, packsOfModel, pageByPage, writeModel } from "./packs-world.ts";
import { type Burst, Turns, whenChanged } from "./turns.ts";

/**
 * Two sandboxes with a chain of images each, both starting from the first one's; an actor that deletes the first
 * sandbox while it is still being written, as a server does that does not know of the deletion yet; and a collector.
 */
const [WRITER, FORK, DELETER, COLLECTOR] = [0, 1, 2, 3] as const;
const [OWNER, OTHER_OWNER] = [randomUUID(), randomUUID()];
const ROUNDS = 3;

interface Story {
  readonly bursts: readonly Burst[];
  readonly lists: "at once" | "page by page";
  readonly killed: { readonly actor: number; readonly call: number } | undefined;
}

const storyArbitrary: fc.Arbitrary<Story> = fc.record({
  bursts: fc.array(fc.record({ actor: fc.nat({ max: 3 }), steps: fc.integer({ min: 1, max: 10 }) }), {
    minLength: 6,
    maxLength: 40,
  }),
  lists: fc.constantFrom("at once", "page by page"),
  killed: fc.option(fc.record({ actor: fc.nat({ max: 3 }), call: fc.integer({ min: 1, max: 30 }) }), {
    nil: undefined,
  }),
});

/** Writes images, each beginning with the one before, which goes as soon as it was pinned: a head has moved, say. */
async function writes(store: ObjectStore, owner: string, first: ModelImage): Promise<void> {
  let last = first;
  for (let round = 1; round <= ROUNDS; round++) {
    const before = last.imageKey;
    const onPinned = async (): Promise<void> => await store.delete(before);
    last = await writeModel(store, "", `${owner}/${round}.img`, last, { owner, onPinned });
  }
}

async function collects(store: ObjectStore): Promise<void> {
  const context = { store, clock: new FakeClock(), apply: true, keep: {} };
  for (let round = 1; round <= 2; round++) await collectPacks(context, new PackSurveyor(packsOfModel), new Set());
}

/** As often as others collect: who comes late finds nothing. */
async function deletes(store: ObjectStore): Promise<void> {
  for (let round = 1; round <= 2; round++) {
    for await (const { key } of store.list(OWNER)) await store.delete(key);
    await removeOwnPacks(store, OWNER, OWNER, packsOfModel);
  }
}

async function check(store: MemoryStore): Promise<void> {
  for (const { key } of await collect(store.list(""))) {
    const packs = key.endsWith(".img") ? await packsOfModel(store, key) : [];
    const missing = packs?.find((id) => !store.has(packKey(id)));
    if (missing !== undefined) throw new Error(`The pack ${missing} of ${key} is gone.`);
  }
}

async function play({ bursts, lists, killed }: Story, bug: PlantedBug = {}): Promise<void> {
  const [store, turns] = [new MemoryStore(), new Turns()];
  const first = await writeModel(store, "", `${OWNER}/0.img`, undefined, { owner: OWNER });
  const storeOf = (actor: number): ObjectStore => {
    const whole = turns.storeOf(actor, store);
    const paged = lists === "at once" ? whole : pageByPage(whole);
    const own = killed?.actor === actor ? killedAt(paged, killed.call) : paged;
    return bug[actor === WRITER || actor === FORK ? "writer" : "collector"]?.(own) ?? own;
  };
  const deeds = {
    [WRITER]: async () => await writes(storeOf(WRITER), OWNER, first),
    [FORK]: async () => await writes(storeOf(FORK), OTHER_OWNER, first),
    [DELETER]: async () => await deletes(storeOf(DELETER)),
    [COLLECTOR]: async () => await collects(storeOf(COLLECTOR)),
  };
  const actors = Object.values(deeds).map((deed) => async (): Promise<void> => {
    await deed().catch((error: unknown) => {
      if (!(error instanceof Killed)) throw error;
    });
  });
  await turns.run(
    actors,
    bursts,
    whenChanged(store, async () => await check(store)),
  );
  if (Object.keys(bug).length === 0) await endWithNothingLeft(store);
}

/** Once nobody writes and no pin is left, what is there is needed. */
async function endWithNothingLeft(store: MemoryStore): Promise<void> {
  for (const { key } of await collect(store.list("pins"))) await store.delete(key);
  await collects(store);
  const all = await collect(store.list(""));
  const needed = new Set<string>();
  for (const { key } of all)
    if (key.endsWith(".img")) for (const id of (await packsOfModel(store, key)) ?? []) needed.add(packKey(id));
  // A verdict of a collection that was killed stays while any of its packs does.
  const left = all.map(({ key }) => key).filter((key) => !/\.(img|shared)$|^condemned\//.test(key));
  for (const { key } of all) if (key.endsWith(".shared")) expect(left).toContain(key.replace(/shared$/, "pack"));
  expect(left.toSorted()).toEqual([...needed].toSorted());
}

describe("packs that images share", () => {
  it("stay as long as an image names them, and no longer", async () => {
    await fc.assert(
      fc.asyncProperty(storyArbitrary, async (story) => await play(story)),
      { numRuns: 500 },
    );
  });

  it.each(Object.entries(PACK_BUGS))("%s is caught", async (_, bug) => {
    const planted = fc.asyncProperty(storyArbitrary, async (story) => {
      await play({ ...story, lists: "at once", killed: undefined }, bug);
    });
    const { failed, errorInstance } = await fc.check(planted, {
      numRuns: 20_000,
      endOnFailure: true,
      seed: 4,
    });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toMatch(/is gone/);
  });
});
