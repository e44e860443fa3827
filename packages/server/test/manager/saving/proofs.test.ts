import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { Proofs } from "../../../src/manager/saving/proofs.ts";

test("a caller that needs the place of one can wait until it has ended", async () => {
  const proofs = new Proofs();
  expect(proofs.gone).toBeUndefined();
  const ended = Promise.withResolvers<void>();
  const outcome = proofs.run(async (signal) => {
    await ended.promise;
    signal.throwIfAborted();
  });
  const refused = outcome.catch((error: unknown) => error);
  await setImmediate();
  expect([proofs.size, proofs.gone]).toEqual([1, undefined]);
  proofs.giveWay();
  let isGone = false;
  const waiting = proofs.gone?.then(() => (isGone = true));
  await setImmediate();
  expect([waiting === undefined, isGone]).toEqual([false, false]);
  ended.resolve();
  await waiting;
  expect(await refused).toMatchObject({ code: "limit_reached" });
  expect([proofs.size, proofs.gone]).toEqual([0, undefined]);
});

test("a limited number of test restores wait, for all callers together; the next one is refused and not kept", async () => {
  const proofs = new Proofs();
  const held = Promise.withResolvers<void>();
  let done = 0;
  const prove = async (): Promise<void> => {
    await held.promise;
    done += 1;
  };
  const waiting = Array.from({ length: 100 }, () => proofs.run(prove));
  await expect(proofs.run(prove)).rejects.toMatchObject({ code: "limit_reached" });
  held.resolve();
  await Promise.all(waiting);
  expect(done).toBe(100);
  await proofs.run(prove);
  expect(done).toBe(101);
});
