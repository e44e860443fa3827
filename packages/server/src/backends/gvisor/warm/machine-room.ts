import { availableParallelism, loadavg, totalmem } from "node:os";
import type { Room } from "./warm-pool.ts";

/** What is left free for sandboxes that somebody has: this much of the memory, and no less than so many bytes. */
const FREE_SHARE = 0.1;
const FREE_BYTES = 512 * 1024 * 1024;
/** So many programs that want to run for each processor are too much for more. */
const LOAD_PER_PROCESSOR = 4;

/** Whether this machine has something to spare for sandboxes that nobody has asked for yet. */
export function machineRoom(): Room {
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  if (process.availableMemory() < Math.max(FREE_BYTES, memoryBytes * FREE_SHARE)) return "short";
  return (loadavg()[0] ?? 0) > LOAD_PER_PROCESSOR * availableParallelism() ? "busy" : "free";
}
