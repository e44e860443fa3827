import { setTimeout as delay } from "node:timers/promises";
import type { Filestore } from "./sandbox-process-tree.ts";

const SHORTEST_MS = 20;
const LONGEST_MS = 500;
/** Nothing writes faster than this for long. */
const BYTES_PER_MS = 1024 * 1024;

/** What a program that only tidies up may write. */
const TOLERATED_BYTES = 1024 * 1024;

/**
 * Holds a sandbox to its disk limit: runsc 20240729 has no limit for the writable layer as a whole. When it grows over
 * the limit, everything inside is killed, and again each time that it grows further; what only reads or removes goes
 * on. The nearer the limit, the more often it is looked at, so that a fast writer is stopped soon after it.
 */
export function watchDiskLimit(filestore: Filestore, limitBytes: number, onExceeded: () => Promise<void>): () => void {
  let allowedBytes = limitBytes;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    let usedBytes = await filestore.usedBytes();
    if (usedBytes > allowedBytes + TOLERATED_BYTES) {
      await onExceeded().catch(() => {});
      // What was being written when the signal came is written to its end.
      await delay(SHORTEST_MS);
      usedBytes = await filestore.usedBytes();
      allowedBytes = usedBytes;
    }
    allowedBytes = Math.max(limitBytes, Math.min(allowedBytes, usedBytes));
    if (!stopped) schedule(lookAgainAfterMs(usedBytes, limitBytes));
  };
  const schedule = (ms: number): void => {
    timer = setTimeout(() => void look(), ms);
    timer.unref();
  };
  schedule(lookAgainAfterMs(0, limitBytes));
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

export function lookAgainAfterMs(usedBytes: number, limitBytes: number): number {
  const untilLimitMs = Math.abs(limitBytes - usedBytes) / BYTES_PER_MS;
  return Math.min(Math.max(untilLimitMs, SHORTEST_MS), LONGEST_MS);
}
