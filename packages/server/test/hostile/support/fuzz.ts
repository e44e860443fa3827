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
  /** Of all inputs, from 0 to 1. */
  readonly share: number;
  /** How many inputs one try has. */
  readonly inputsOfTry: number;
  readonly input: fc.Arbitrary<Input>;
  readonly check: (input: Input) => Promise<void>;
}

export async function fuzz<Input>({ name, share, inputsOfTry, input, check }: Fuzzer<Input>): Promise<void> {
  const property = fc.asyncProperty(input, check);
  for (const { seed, path } of readFailures().filter(({ fuzzer }) => fuzzer === name)) {
    await fc.assert(property, { seed, path, numRuns: 1, endOnFailure: true });
  }
  const result = await fc.check(property, {
    numRuns: Math.ceil((INPUTS * share) / inputsOfTry),
    ...unlessRandom(process.env["SANDBOXER_HOSTILE_SEED"]),
  });
  if (result.failed && result.counterexamplePath !== null)
    saveFailure({ fuzzer: name, seed: result.seed, path: result.counterexamplePath });
  const why = result.errorInstance instanceof Error ? result.errorInstance.message : "";
  if (result.failed) expect.fail(`${fc.defaultReportMessage(result)}\n${why}`);
}

function unlessRandom(seed: string | undefined): { seed?: number } {
  return seed === undefined ? {} : { seed: Number(seed) };
}

function readFailures(): readonly SavedFailure[] {
  return existsSync(SEEDS) ? (JSON.parse(readFileSync(SEEDS, "utf8")) as SavedFailure[]) : [];
}

function saveFailure(failure: SavedFailure): void {
  writeFileSync(SEEDS, `${JSON.stringify([...readFailures(), failure], null, 2)}\n`);
}
