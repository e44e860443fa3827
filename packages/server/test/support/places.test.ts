import { expect, test } from "vitest";
import { Places } from "../../src/support/places.ts";

/** Work that ends on request, and the number of running pieces. */
function workshop(places: Places) {
  const under: PromiseWithResolvers<void>[] = [];
  const begin = (): Promise<void> =>
    places.run(async () => {
      const work = Promise.withResolvers<void>();
      under.push(work);
      await work.promise;
    });
  return { under, begin };
}

const aTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("no more work runs at once than there are places, in order", async () => {
  const places = new Places(2);
  const { under, begin } = workshop(places);
  const all = [begin(), begin(), begin()];
  await aTurn();
  expect(under).toHaveLength(2);
  expect(places.crowded).toBe(true);
  under[0]?.reject(new Error("it failed"));
  await expect(all[0]).rejects.toThrow("it failed");
  await aTurn();
  expect(under).toHaveLength(3);
  expect(places.crowded).toBe(false);
});

test("added places let in waiting callers", async () => {
  const places = new Places(1);
  const { under, begin } = workshop(places);
  const all = [begin(), begin(), begin()];
  places.add(1);
  await aTurn();
  expect(under).toHaveLength(2);
  for (const each of all) each.catch(() => {});
});

test("a place is given back once", async () => {
  const places = new Places(1);
  const giveBack = await places.take();
  giveBack();
  giveBack();
  const { under, begin } = workshop(places);
  void begin();
  void begin();
  await aTurn();
  expect(under).toHaveLength(1);
});
