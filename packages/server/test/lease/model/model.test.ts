import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../store/temporary-folder.ts";
import { check, whyNot } from "./spin.ts";

const reason = await whyNot();
if (reason !== undefined) process.stdout.write(`The model of the lease is not checked: ${reason}\n`);

/** Each goes deep into one kind of trouble; all kinds at once take minutes. */
const CASES: [string, string[]][] = [
  ["swaps that arrive late", ["VERSIONS=5", "LATE=1", "REBIRTHS=0", "NO_COLLECTION"]],
  ["crashes and fencings", ["VERSIONS=5", "LATE=0", "REBIRTHS=1", "NO_COLLECTION"]],
  ["collection", ["VERSIONS=7", "LATE=0", "REBIRTHS=0"]],
];

const BUGS: [string, RegExp][] = [
  ["PLAIN_PUT", /./],
  ["CHECK_THEN_PUT", /./],
  ["AMBIGUOUS_AS_SUCCESS", /./],
  ["EPOCH_NOT_BUMPED", /committer/],
  ["COLLECTION_REGARDLESS_OF_EPOCH", /removed/],
  ["WALL_CLOCK", /owner/],
  ["NO_TOMBSTONE", /owner/],
  ["NO_FREEZE", /owner/],
];

describe.skipIf(reason !== undefined)("the model of the lease, in every interleaving of two instances", () => {
  it.each(CASES)("keeps every promise with %s", { timeout: 180_000 }, async (_, switches) => {
    const { errors, states } = await check(await temporaryFolder(), switches, "-O1");
    expect(errors).toBe(0);
    expect(states).toBeGreaterThan(1_000_000);
  });

  it.each(BUGS)("shows what the bug %s breaks", { timeout: 60_000 }, async (bug, promise) => {
    const switches = ["VERSIONS=7", "LATE=0", "REBIRTHS=0", `BUG_${bug}`];
    const { errors, broken } = await check(await temporaryFolder(), switches, "-O0");
    expect(errors).toBe(1);
    expect(broken).toMatch(promise);
  });
});
