import type { OutputChunk } from "../backend.ts";
import type { OutputLog } from "../output/output-log.ts";

/** Who reads now; a newcomer takes the place of the one before. */
export interface ReaderSlot {
  reader: object | undefined;
}

/** Follows a log to its end. The first `next` makes this the reader and ends the older one. */
export async function* followLog(
  log: OutputLog,
  slot: ReaderSlot,
  failure: () => unknown,
  { from = log.acknowledged, signal }: { readonly from?: number; readonly signal?: AbortSignal },
): AsyncGenerator<OutputChunk> {
  const reader = {};
  slot.reader = reader;
  log.notify();
  const onAbort = (): void => log.notify();
  signal?.addEventListener("abort", onAbort);
  let position = from;
  try {
    for (;;) {
      if (slot.reader !== reader || signal?.aborted === true) return;
      const chunk = log.at(position);
      if (chunk !== undefined) {
        position = chunk.offset + chunk.data.length;
        yield chunk;
      } else if (log.finished) {
        return;
      } else {
        // What arrived before the failure is read first.
        const failed = failure();
        if (failed !== undefined) throw failed;
        await log.changed();
      }
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
