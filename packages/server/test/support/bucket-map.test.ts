import { expect, it } from "vitest";
import { BucketMap } from "../../src/support/bucket-map.ts";

it("a change leaves the earlier map unchanged", () => {
  let map = BucketMap.empty<number>();
  const plain = new Map<string, number>();
  const earlier: { readonly map: BucketMap<number>; readonly entries: number }[] = [];
  for (let count = 0; count < 5_000; count++) {
    const key = `key-${(count * 7919) % 1_500}`;
    const value = count % 3 === 0 ? undefined : count;
    map = map.with(key, value);
    if (value === undefined) plain.delete(key);
    else plain.set(key, value);
    expect(map.get(key)).toBe(value);
    earlier.push({ map, entries: plain.size });
  }
  expect([...map.keys()].toSorted()).toEqual([...plain.keys()].toSorted());
  expect([...map.values()].toSorted()).toEqual([...plain.values()].toSorted());
  for (const { map: before, entries } of earlier) expect(before.size).toBe(entries);
  expect([...BucketMap.of(plain).values()].toSorted()).toEqual([...plain.values()].toSorted());
  expect(map.with("key-0", map.get("key-0"))).toBe(map);
});
