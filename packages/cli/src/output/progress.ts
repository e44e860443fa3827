import type { OperationRecordBody } from "@sandboxer/protocol";
import type { Io } from "../io.ts";
import { formatBytes } from "./bytes.ts";
import { visible } from "./table.ts";
import { formatMs, formatSeconds } from "./time.ts";

/** The progress of an operation. */
export interface Progress {
  readonly what: string;
  readonly doneBytes: number | null;
  readonly totalBytes: number | null;
  readonly elapsedMs: number;
}

const WIDTH = 20;
/** A bar that disappears within this time would only flicker. */
const SHOW_AFTER_MS = 300;
const PAINT_EVERY_MS = 100;
/** Back to the start of the line, and clear it. */
const CLEAR = "\r\u001B[K";

/** One progress line on stderr, only in a terminal. */
export class ProgressLine {
  readonly #io: Pick<Io, "stderr">;
  readonly #on: boolean;
  readonly #startMs = performance.now();
  #paintedMs = 0;
  #painted = false;

  constructor(io: Pick<Io, "stderr" | "interactive">, json: boolean) {
    this.#io = io;
    this.#on = io.interactive && !json;
  }

  show(progress: Progress): void {
    const nowMs = performance.now();
    if (!this.#on || nowMs - this.#startMs < SHOW_AFTER_MS || nowMs - this.#paintedMs < PAINT_EVERY_MS) return;
    this.#paintedMs = nowMs;
    this.#painted = true;
    this.#io.stderr(CLEAR + formatProgress(progress));
  }

  /** Shows an operation from its record. */
  readonly operation = (operation: OperationRecordBody): void => {
    const { kind, phase, phases, done_bytes: doneBytes, total_bytes: totalBytes } = operation;
    // The bytes belong to this phase; including earlier time would make the rate too low.
    const earlierMs = Object.values(phases).reduce((sum, milliseconds) => sum + milliseconds, 0);
    const elapsedMs = Math.max(0, operation.elapsed_ms - earlierMs);
    this.show({ what: phase === null ? kind : `${kind}: ${phase}`, doneBytes, totalBytes, elapsedMs });
  };

  /** Removes the line; later output starts on a clean one. */
  end(): void {
    if (this.#painted) this.#io.stderr(CLEAR);
    this.#painted = false;
  }
}

/** `checkpoint: pack [#####...] 31%  12.3 MiB of 40.0 MiB  8.1 MiB/s  3 s left`. */
export function formatProgress({ what, doneBytes, totalBytes, elapsedMs }: Progress): string {
  const label = visible(what);
  if (doneBytes === null || doneBytes === 0) return `${label}  ${formatMs(elapsedMs)}`;
  const bytesInSecond = elapsedMs > 0 ? (doneBytes * 1000) / elapsedMs : 0;
  const rate = `${formatBytes(Math.round(bytesInSecond))}/s`;
  if (totalBytes === null || totalBytes === 0) return `${label}  ${formatBytes(doneBytes)}  ${rate}`;
  const part = Math.min(1, doneBytes / totalBytes);
  const filled = Math.floor(part * WIDTH);
  const bar = "#".repeat(filled) + ".".repeat(WIDTH - filled);
  const left = bytesInSecond > 0 ? `  ${formatSeconds(Math.ceil((totalBytes - doneBytes) / bytesInSecond))} left` : "";
  const amount = `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`;
  return `${label} [${bar}] ${Math.floor(part * 100)}%  ${amount}  ${rate}${left}`;
}
