import { CollectedStream } from "./collected-stream.ts";
import type { ManagedProcess } from "./managed-process.ts";
import type { OutputBudget } from "./output-budget.ts";

/**
 * How far a reader whose client does not confirm output stays behind with acknowledging: more than the buffers between
 * here and the client hold, and half of what the sandbox keeps.
 */
export const BEHIND_BYTES = 512 * 1024;

export interface CollectedOutput {
  readonly stdout: CollectedStream;
  readonly stderr: CollectedStream;
  /** Output is missing at the end, or its beginning was dropped. */
  readonly truncated: boolean;
  /** Releases the memory. Call it when the response was sent, or will not be. */
  release(): void;
}

export interface CollectOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Reads a process to its end and returns its output up to a limit; the rest is read and dropped. When the memory budget
 * is used up it stops reading, which makes the program wait.
 */
export async function collectOutput(
  process: ManagedProcess,
  budget: OutputBudget,
  { maxBytes, signal }: CollectOptions,
): Promise<CollectedOutput> {
  const from = await process.startOf(0);
  const share = budget.open();
  const streams = { stdout: new CollectedStream(share, from), stderr: new CollectedStream(share, from) };
  let truncated = from > 0;
  let room = maxBytes;
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  const onStop = (): void => stop.abort();
  // A sandbox that ends gives no more output; reading on gives the reason.
  process.exited.catch(onStop);
  try {
    for await (const { stream, offset, data } of process.follow({ from, signal, onStop })) {
      const kept = data.subarray(0, room);
      if (kept.length < data.length) truncated = true;
      room -= kept.length;
      if (await streams[stream].append(kept, stopped)) process.acknowledge(offset + data.length - BEHIND_BYTES);
    }
    signal.throwIfAborted();
  } catch (error) {
    share.release();
    throw error;
  }
  return { ...streams, truncated, release: () => share.release() };
}
