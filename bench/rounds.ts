import { setTimeout as sleep } from "node:timers/promises";
import { summarize, type Summary } from "./statistics.ts";

/** So that one side's work after its last answer is not charged to the other. */
const PAUSE_MS = 250;

export interface Pair {
  readonly ours: Summary;
  readonly raw: Summary;
}

/**
 * Runs both sides once per round, so that both meet the same state of the machine; every second round starts with the
 * other side. The first round warms up and does not count.
 */
export async function measurePair(
  rounds: number,
  ours: (counts: boolean) => Promise<number>,
  raw: (counts: boolean) => Promise<number>,
): Promise<Pair> {
  const values = { ours: [] as number[], raw: [] as number[] };
  for (let round = 0; round <= rounds; round++) {
    const counts = round > 0;
    const doOurs = async (): Promise<void> => {
      values.ours.push(await ours(counts));
      await sleep(PAUSE_MS);
    };
    const doRaw = async (): Promise<void> => {
      values.raw.push(await raw(counts));
      await sleep(PAUSE_MS);
    };
    if (round % 2 === 0) {
      await doOurs();
      await doRaw();
    } else {
      await doRaw();
      await doOurs();
    }
    if (!counts) values.ours.length = values.raw.length = 0;
  }
  return { ours: summarize(values.ours), raw: summarize(values.raw) };
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
