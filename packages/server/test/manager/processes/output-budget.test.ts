import { expect, test } from "vitest";
import { OutputBudget, type OutputShare } from "../../../src/manager/processes/output-budget.ts";

const KIB = 1024;
const never = new AbortController().signal;

/** The result of a take after everything possible was granted. */
async function outcome(take: Promise<boolean>): Promise<boolean | "waits"> {
  const soon = new Promise<"waits">((resolve) => setImmediate(() => resolve("waits")));
  return await Promise.race([take, soon]);
}

/** Fills a budget with shares of 200 KiB until the last of them exceeds it. */
async function fill(budget: OutputBudget): Promise<OutputShare[]> {
  const shares: OutputShare[] = [];
  while (budget.heldBytes <= budget.limitBytes) {
    const share = budget.open();
    shares.push(share);
    expect(await outcome(share.take(200 * KIB, never))).toBe(true);
  }
  return shares;
}

test("the first that waits may exceed the budget, and the next ones wait in order", async () => {
  const budget = new OutputBudget(1000 * KIB);
  const shares = await fill(budget);
  const [second, third] = [budget.open(), budget.open()];
  const takes = [second.take(200 * KIB, never), third.take(200 * KIB, never)];
  expect([await outcome(takes[0]!), await outcome(takes[1]!), budget.waiting]).toEqual(["waits", "waits", 2]);
  expect(await outcome(shares.at(-1)!.take(10_000 * KIB, never))).toBe(true);
  shares.at(-1)?.release();
  expect([await takes[0], await outcome(takes[1]!)]).toEqual([true, "waits"]);
  second.release();
  expect(await takes[1]).toBe(true);
  for (const share of [...shares, third]) share.release();
  expect([budget.heldBytes, budget.waiting]).toEqual([0, 0]);
});

test("a small answer never waits", async () => {
  const budget = new OutputBudget(1000 * KIB);
  await fill(budget);
  const small = budget.open();
  expect(await outcome(small.take(64 * KIB, never))).toBe(true);
  expect(await outcome(small.take(64 * KIB, never))).toBe(true);
  expect(await outcome(small.take(64 * KIB, never))).toBe("waits");
});

test("an aborted response leaves the queue to the others, and holds nothing", async () => {
  const budget = new OutputBudget(1000 * KIB);
  const shares = await fill(budget);
  const held = budget.heldBytes;
  const gone = new AbortController();
  const [first, second] = [budget.open(), budget.open()];
  const takes = [first.take(400 * KIB, gone.signal), second.take(200 * KIB, never)];
  expect(await outcome(takes[0]!)).toBe("waits");
  gone.abort();
  expect([await takes[0], budget.heldBytes, budget.waiting]).toEqual([false, held, 1]);
  expect(await outcome(first.take(KIB, gone.signal))).toBe(false);
  shares[0]?.release();
  expect(await outcome(takes[1]!)).toBe("waits");
  shares[1]?.release();
  expect(await takes[1]).toBe(true);
});

test("many collections that each hold a part all finish, one beyond the budget at a time", async () => {
  const [limit, each, block] = [1000 * KIB, 600 * KIB, 50 * KIB];
  const budget = new OutputBudget(limit);
  let most = 0;
  const collect = async (): Promise<void> => {
    const share = budget.open();
    while (share.heldBytes < each) {
      expect(await share.take(block, never)).toBe(true);
      most = Math.max(most, budget.heldBytes);
    }
    share.release();
  };
  await Promise.all(Array.from({ length: 16 }, collect));
  expect(budget.heldBytes).toBe(0);
  expect(most).toBeLessThanOrEqual(limit + each + 16 * 128 * KIB);
});
