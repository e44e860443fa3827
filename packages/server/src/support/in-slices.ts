import { setImmediate } from "node:timers/promises";

const SLICE_MS = 5;
/** How often the time is looked at. */
const STEPS = 64;

/** Does the same for each number from 0 on, and lets others have their turn every few milliseconds. */
export async function inSlices(count: number, each: (index: number) => void): Promise<void> {
  let sinceMs = performance.now();
  for (let index = 0; index < count; index++) {
    each(index);
    if (index % STEPS !== STEPS - 1 || performance.now() - sinceMs < SLICE_MS) continue;
    await setImmediate();
    sinceMs = performance.now();
  }
}
