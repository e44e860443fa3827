import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { check, whyNot } from "./spin.ts";

const reason = await whyNot();
if (reason !== undefined) process.stdout.write(`The model of the lease is not checked: ${reason}\n`);

/** Each goes deep into one kind of trouble; all kinds at once take minutes. */
const CASES: [string, string[]][] = [
  ["swaps that arrive late", ["VERSIONS=5", "LATE=1", "REBIRTHS=0", "NO_COLLECTION"]],
  ["crashes and fencings", ["VERSIONS=5", "LATE=0", "REBIRTHS=1", "NO_COLLECTION"]],
  ["collection", ["VERSIONS=7", "LATE=0", "REBIRTHS=0"]],
  ["promotions that arrive late", ["VERSIONS=5", "LATE=1", "REBIRTHS=0", "PROMOTIONS", "NO_COLLECTION"]],
  ["promotions and crashes", ["VERSIONS=5", "LATE=0", "REBIRTHS=1", "PROMOTIONS", "NO_COLLECTION"]],
  ["a sandbox that its provider keeps", ["VERSIONS=5", "LATE=1", "REBIRTHS=1", "KEPT"]],
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

/** For provider-kept sandboxes: either the overtaken server or the one whose swap was lost may break it. */
const BUGS_OF_KEPT: [string, RegExp][] = [
  ["LOST_IS_REMOVED", /kept/],
  ["REMOVED_BEFORE_TOMBSTONE", /kept/],
  ["NO_TOMBSTONE", /owner/],
  ["NO_FREEZE", /owner/],
];

describe.skipIf(reason !== undefined)("the model of the lease, in every interleaving of two instances", () => {
  it.each(CASES)("keeps every promise with %s", async (_, switches) => {
    const { errors, states } = await check(await temporaryFolder(), switches, "-O1");
    expect(errors).toBe(0);
    expect(states).toBeGreaterThan(1_000_000);
  });

  const expectFound = async (bug: string, promise: RegExp, switches: readonly string[]): Promise<void> => {
    const { errors, broken } = await check(await temporaryFolder(), [...switches, `BUG_${bug}`], "-O0");
    expect(errors).toBe(1);
    expect(broken).toMatch(promise);
  };

  it.each(BUGS)("finds the violation of the bug %s", async (bug, promise) => {
    await expectFound(bug, promise, ["VERSIONS=7", "LATE=0", "REBIRTHS=0"]);
  });

  it("shows that a promoted fork must not end before the original has its state", async () => {
    await expectFound("WINNER_ENDS_FIRST", /winner/, ["VERSIONS=5", "LATE=0", "REBIRTHS=0", "PROMOTIONS"]);
  });

  it.each(BUGS_OF_KEPT)("finds the violation of the bug %s at a provider", async (bug, promise) => {
    await expectFound(bug, promise, ["VERSIONS=7", "LATE=0", "REBIRTHS=1", "KEPT"]);
  });
});
