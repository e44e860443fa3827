import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inRounds } from "../../../src/checkpoints/block-image/reading-rounds.ts";

const job = (name: string, ...packs: number[]) => ({ name, packs: new Set(packs) });
const rounds = (jobs: readonly ReturnType<typeof job>[], sizes: readonly number[], roomBytes: number) =>
  inRounds(jobs, (pack) => sizes[pack] ?? 0, roomBytes);

describe("rounds", () => {
  it("are one, in order, where there is room for all packs", () => {
    const jobs = [job("a", 1), job("b", 0), job("c", 1, 0)];
    expect(rounds(jobs, [10, 10], 20).map((round) => round.jobs)).toEqual([jobs]);
  });

  it("have those together that need the same packs", () => {
    const jobs = [job("a", 0), job("b", 1), job("c"), job("d", 0), job("e", 1)];
    const names = rounds(jobs, [10, 10], 10).map((round) => round.jobs.map(({ name }) => name).join(""));
    expect(names).toEqual(["cad", "be"]);
  });

  it("do every job once, with no more packs at a time than there is room for, or than one job needs", () => {
    const packs = fc.uniqueArray(fc.nat(7), { maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(packs, { maxLength: 30 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 8, maxLength: 8 }),
        fc.nat(200),
        (needs, sizes, roomBytes) => {
          const jobs = needs.map((each, index) => job(String(index), ...each));
          const divided = rounds(jobs, sizes, roomBytes);
          expect(divided.flatMap((round) => round.jobs).toSorted((a, b) => Number(a.name) - Number(b.name))).toEqual(
            jobs,
          );
          for (const round of divided) {
            const bytes = round.packs.values().reduce((sum, pack) => sum + (sizes[pack] ?? 0), 0);
            const isOfOne = round.jobs.some((each) => each.packs.size === round.packs.size);
            expect(bytes <= roomBytes || isOfOne).toBe(true);
            for (const each of round.jobs) expect(each.packs.isSubsetOf(round.packs)).toBe(true);
          }
        },
      ),
    );
  });
});
