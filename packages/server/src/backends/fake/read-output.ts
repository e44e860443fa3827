import type { OutputChunk } from "../backend.ts";
import type { Machine } from "./machine/machine.ts";
import type { MachineProcess } from "./machine/machine-process.ts";

/**
 * Follows the log of a process. Becoming the reader happens at once, not at the first `next`, so that the older reader
 * ends now. While the machine is paused nothing arrives, as from a frozen agent.
 */
export function readOutput(
  process: MachineProcess,
  machine: Machine,
  options: { readonly from?: number; readonly signal?: AbortSignal },
): AsyncIterable<OutputChunk> {
  const reader = {};
  process.reader = reader;
  process.log.notify();
  return follow(process, machine, reader, options.from ?? process.log.acknowledged, options.signal);
}

async function* follow(
  process: MachineProcess,
  machine: Machine,
  reader: object,
  from: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<OutputChunk> {
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
