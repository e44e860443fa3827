import { setTimeout as delay } from "node:timers/promises";
import type { Filestore } from "./sandbox-process-tree.ts";

const SHORTEST_MS = 20;
const LONGEST_MS = 500;
/** Nothing writes faster than this for long. */
const BYTES_PER_MS = 1024 * 1024;

/** The bytes that a clean-up program may write beyond the limit. */
const TOLERATED_BYTES = 1024 * 1024;

/**
 * Enforces a sandbox's disk limit: runsc 20240729 has no limit for the whole writable layer. When it exceeds the limit,
 * everything inside is killed, and again each time that it grows further; programs that only read or delete keep
 * running. The nearer the limit, the more often it is checked, so that a fast writer is stopped soon.
 */
export class DiskWatch {
  readonly #filestore: Pick<Filestore, "usedBytes">;
  readonly #limitBytes: number;
  readonly #onExceeded: () => Promise<void>;
  #allowedBytes: number;
  #usedBytes = 0;
  #resting = true;
  #looking = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(filestore: Pick<Filestore, "usedBytes">, limitBytes: number, onExceeded: () => Promise<void>) {
    this.#filestore = filestore;
    this.#limitBytes = limitBytes;
    this.#allowedBytes = limitBytes;
    this.#onExceeded = onExceeded;
  }

  /** Starts, or continues after a rest. */
  start(): void {
    if (!this.#resting) return;
    this.#resting = false;
    // A check that began before the rest continues by itself.
    if (!this.#looking) this.#lookAgain();
  }

  /** Rests while nothing can be written. */
  rest(): void {
    this.#resting = true;
    clearTimeout(this.#timer);
  }

  #lookAgain(): void {
    this.#timer = setTimeout(() => void this.#look(), lookAgainAfterMs(this.#usedBytes, this.#limitBytes));
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    let usedBytes = await this.#filestore.usedBytes();
    if (usedBytes > this.#allowedBytes + TOLERATED_BYTES) {
      await this.#onExceeded().catch(() => {});
      // Writes in progress at the signal are completed.
      await delay(SHORTEST_MS);
      usedBytes = await this.#filestore.usedBytes();
      this.#allowedBytes = usedBytes;
    }
    this.#allowedBytes = Math.max(this.#limitBytes, Math.min(this.#allowedBytes, usedBytes));
    this.#usedBytes = usedBytes;
    this.#looking = false;
    if (!this.#resting) this.#lookAgain();
  }
}

export function lookAgainAfterMs(usedBytes: number, limitBytes: number): number {
  const untilLimitMs = Math.abs(limitBytes - usedBytes) / BYTES_PER_MS;
  return Math.min(Math.max(untilLimitMs, SHORTEST_MS), LONGEST_MS);
}
