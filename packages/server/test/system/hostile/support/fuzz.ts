import { existsSync, readFileSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { expect } from "vitest";

/** How many inputs all fuzzers of this folder try together: `npm run test:hostile -- --inputs N`. */
const INPUTS = Number(process.env["SANDBOXER_HOSTILE_INPUTS"] ?? 5_000);
/** Failures that were seen: each is tried again before anything new. Commit the file with the fix. */
const SEEDS = new URL("../seeds.json", import.meta.url);

interface SavedFailure {
  readonly fuzzer: string;
  readonly seed: number;
  readonly path: string;
}

export interface Fuzzer<Input> {
  readonly name: string;
  /** The share of all inputs, from 0 to 1. */
  readonly share: number;
  /** How many inputs one try has. */
  readonly inputsOfTry: number;
  readonly input: fc.Arbitrary<Input>;
  readonly check: (input: Input) => Promise<void>;
  /** Where failures are kept. */
  readonly seeds?: URL;
}

export async function fuzz<Input>(fuzzer: Fuzzer<Input>): Promise<void> {
  const { name, share, inputsOfTry, input, check, seeds = SEEDS } = fuzzer;
  const property = fc.asyncProperty(input, check);
  for (const { seed, path } of readFailures(seeds).filter(({ fuzzer }) => fuzzer === name)) {
    await fc.assert(property, { seed, path, numRuns: 1, endOnFailure: true });
  }
  const result = await fc.check(property, {
    numRuns: Math.ceil((INPUTS * share) / inputsOfTry),
    ...unlessRandom(process.env["SANDBOXER_HOSTILE_SEED"]),
  });
  if (result.failed && result.counterexamplePath !== null)
    saveFailure(seeds, { fuzzer: name, seed: result.seed, path: result.counterexamplePath });
  const why = result.errorInstance instanceof Error ? result.errorInstance.message : "";
  if (result.failed) expect.fail(`${fc.defaultReportMessage(result)}\n${why}`);
}

function unlessRandom(seed: string | undefined): { seed?: number } {
  return seed === undefined ? {} : { seed: Number(seed) };
}

function readFailures(seeds: URL): readonly SavedFailure[] {
  return existsSync(seeds) ? (JSON.parse(readFileSync(seeds, "utf8")) as SavedFailure[]) : [];
}

function saveFailure(seeds: URL, failure: SavedFailure): void {
  writeFileSync(seeds, `${JSON.stringify([...readFailures(seeds), failure], null, 2)}\n`);
}
