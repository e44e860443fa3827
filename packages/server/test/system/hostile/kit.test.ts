import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { riseOf } from "./soak/slope.ts";
import { fuzz } from "./support/fuzz.ts";

test("an input that fails is tried first the next time", async () => {
  const seeds = pathToFileURL(join(await temporaryFolder(), "seeds.json"));
  const tried: number[] = [];
  const fuzzer = (limit: number) => ({
    name: "numbers",
    share: 1,
    inputsOfTry: 1,
    input: fc.nat(1_000_000),
    check: async (value: number) => {
      tried.push(value);
      if (value > limit) throw new Error(`${value} is too much`);
    },
    seeds,
  });
  await expect(fuzz(fuzzer(1_000))).rejects.toThrow(/1001 is too much/);
  tried.length = 0;
  await fuzz(fuzzer(Infinity));
  expect(tried[0]).toBe(1_001);
});

test("a slope is found below noise, and noise has none", () => {
  const noise = [3, -2, 4, -4, 1, -3, 2, -1];
  const samples = (slope: number) =>
    noise.map((jitter, index) => [index * 10, 100 + slope * index * 10 + jitter] as const);
  expect(riseOf(samples(1))).toBeGreaterThan(60);
  expect(Math.abs(riseOf(samples(0)))).toBeLessThan(5);
  expect(riseOf([[1, 5]])).toBe(0);
});
