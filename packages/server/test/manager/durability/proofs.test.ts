import { expect, test } from "vitest";
import { Proofs } from "../../../src/manager/durability/proofs.ts";

test("so many test restores wait at most, whoever asks for them; the next one is refused and not kept", async () => {
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
