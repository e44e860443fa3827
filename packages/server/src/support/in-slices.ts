import { setImmediate } from "node:timers/promises";

const SLICE_MS = 5;
/** How often the clock is checked. */
const STEPS = 64;

/** Runs the same work for each number from 0, and yields to others every few milliseconds. */
export async function inSlices(count: number, each: (index: number) => void): Promise<void> {
  let sinceMs = performance.now();
  for (let index = 0; index < count; index++) {
    each(index);
    if (index % STEPS !== STEPS - 1 || performance.now() - sinceMs < SLICE_MS) continue;
    await setImmediate();
    sinceMs = performance.now();
  }
}
