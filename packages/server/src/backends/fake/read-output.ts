import type { OutputChunk } from "../backend.ts";
import type { Machine } from "./machine/machine.ts";
import type { MachineProcess } from "./machine/machine-process.ts";

/**
 * Follows the log of a process. The first `next` makes this the reader and ends the older one. While the machine is
 * paused nothing arrives, as from a frozen agent.
 */
export async function* readOutput(
  process: MachineProcess,
  machine: Machine,
  { from = process.log.acknowledged, signal }: { readonly from?: number; readonly signal?: AbortSignal },
): AsyncGenerator<OutputChunk> {
  const reader = {};
  process.reader = reader;
  process.log.notify();
  const { log } = process;
  const onAbort = (): void => log.notify();
  signal?.addEventListener("abort", onAbort);
  let position = from;
  try {
    for (;;) {
      if (process.reader !== reader || signal?.aborted === true) return;
      if (machine.end !== undefined) throw machine.failure();
      const chunk = machine.scheduler.paused ? undefined : log.at(position);
      if (chunk !== undefined) {
        position = chunk.offset + chunk.data.length;
        yield chunk;
      } else if (log.finished && !machine.scheduler.paused) {
        return;
      } else {
        await log.changed();
      }
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
