import { expect, it } from "vitest";
import { entryKey, placeOf } from "../../src/store/index/index-names.ts";
import { StoreIndex } from "../../src/store/index/store-index.ts";
import { MemoryStore } from "../collection/memory-store.ts";
import { Random } from "../lease/simulation/random.ts";

const STORED = 4_000;
/** Each with the share of sandboxes that it has. */
const VIEWS = [
  ["all", 1],
  ["most", 0.7],
  ["some", 0.3],
  ["few", 0.01],
] as const;

/** Several sandboxes are created in one millisecond, and an entry may have two suffixes for a while. */
it.each([1, 2, 3])("finds what all views have, in order and from any position on (seed %i)", async (seed) => {
  const [store, random] = [new MemoryStore(), new Random(seed)];
  const index = new StoreIndex(store, async () => []);
  const members = new Map<string, Set<string>>();
  for (let number = 0; number < STORED; number++) {
    const id = `${Math.floor(random.next() * 0xffff_ffff)
      .toString(16)
      .padStart(8, "0")}-0000-4000-8000-${String(number).padStart(12, "0")}`;
    const createdAt = new Date(1_700_000_000_000 + Math.floor(random.next() * 2_000)).toISOString();
    const place = placeOf(createdAt, id);
    for (const [view, chance] of VIEWS) {
      if (!random.chance(chance)) continue;
      const suffixes = view === "all" ? [undefined] : random.chance(0.2) ? ["1", "ffff"] : ["y"];
      await store.addNames(suffixes.map((suffix) => entryKey(view, place, suffix)));
      members.set(view, (members.get(view) ?? new Set()).add(place));
    }
  }
  for (const wanted of [
    ["all"],
    ["most"],
    ["most", "some"],
    ["few", "most", "some"],
    ["all", "few"],
    ["all", "none"],
  ]) {
    const sets = wanted.map((view) => members.get(view) ?? new Set<string>());
    const expected = [...(sets[0] ?? [])].filter((place) => sets.every((set) => set.has(place))).toSorted();
    const ids = expected.map((place) => place.slice("0000000000000-".length));
    expect(await Array.fromAsync(index.ids(wanted))).toEqual(ids);
    const after = Math.floor(random.next() * expected.length);
    expect(await Array.fromAsync(index.ids(wanted, expected[after]))).toEqual(ids.slice(after + 1));
  }
});
