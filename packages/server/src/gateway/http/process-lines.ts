import { Readable } from "node:stream";
import { asSandboxerError, type ExecLine, type OutputFrame } from "@sandboxer/protocol";
import { BEHIND_BYTES } from "../../manager/processes/collect-output.ts";
import type { ManagedProcess } from "../../manager/processes/managed-process.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { signalName } from "../../manager/processes/signals.ts";
import { cutMessage } from "../../support/cut-message.ts";
import { StreamAnswer } from "./handler.ts";

const BUFFER_BYTES = 64 * 1024;

export type OutputEncoding = "utf8" | "base64";

export interface LinesOptions {
  readonly from: number | undefined;
  readonly encoding: OutputEncoding;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Called once at the end, with whether the client received the last line. */
  readonly onClose: (complete: boolean) => void;
}

/** The output of a process from an offset to its end, as JSON lines. */
export function followLines(process: ManagedProcess, options: LinesOptions): StreamAnswer {
  const body = Readable.from(lines(process, options), { objectMode: false, highWaterMark: BUFFER_BYTES });
  body.once("close", () => options.onClose(!options.signal.aborted));
  options.signal.addEventListener("abort", () => body.destroy(), { once: true });
  if (options.signal.aborted) body.destroy();
  return new StreamAnswer("application/x-ndjson", body);
}

/** The buffered output, as JSON lines. */
export async function presentLines(
  process: ManagedProcess,
  from: number | undefined,
  encoding: OutputEncoding,
): Promise<StreamAnswer> {
  const { start, end, chunks } = await process.look(from);
  const { exit } = process;
  const last: ExecLine =
    exit !== undefined && end >= exit.outputEnd ? exitLine(process) : { event: "end", offset: end };
  const all: ExecLine[] = [started(process, start), ...chunks.map((chunk) => outputLine(chunk, encoding)), last];
  return new StreamAnswer("application/x-ndjson", Readable.from(all.map(written), { objectMode: false }));
}

async function* lines(process: ManagedProcess, { from, encoding, signal }: LinesOptions): AsyncGenerator<string> {
  let position = 0;
  try {
    position = await process.startOf(from);
    yield written(started(process, position));
    for await (const chunk of process.follow({ from: position, signal })) {
      position = chunk.offset + chunk.data.length;
      yield written(outputLine(chunk, encoding));
      // The next line is read when the socket has room, so that unsent output only fills buffers.
      process.acknowledge(position - BEHIND_BYTES);
    }
    if (signal.aborted) return;
    yield written(exitLine(process));
    process.told = true;
  } catch (thrown) {
    if (thrown instanceof Moving) {
      yield written({ event: "moving", process_id: process.id, offset: position });
      return;
    }
    const { code, message, hint } = asSandboxerError(thrown);
    yield written({ event: "error", code, message: cutMessage(message), hint });
  }
}

function started({ id, pid }: ManagedProcess, offset: number): ExecLine {
  return { event: "started", process_id: id, pid, offset };
}

function outputLine({ stream, offset, data }: OutputFrame, encoding: OutputEncoding): ExecLine {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString(encoding);
  return { event: stream, data: text, encoding, offset: offset + data.length };
}

function exitLine({ exit, timedOut, hint }: ManagedProcess): ExecLine {
  return {
    event: "exit",
    exit_code: exit?.code ?? null,
    signal: signalName(exit?.signal),
    offset: exit?.outputEnd ?? 0,
    timed_out: timedOut,
    hint,
  };
}

function written(line: ExecLine): string {
  return `${JSON.stringify(line)}\n`;
}
