import { Readable } from "node:stream";
import { asSandboxerError, type CellLine } from "@sandboxer/protocol";
import type { CellEvent } from "../../manager/interpreter/run-cell.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { signalName } from "../../manager/processes/signals.ts";
import { cutMessage } from "../../support/cut-message.ts";
import { StreamAnswer } from "./handler.ts";

const BUFFER_BYTES = 64 * 1024;

export interface CellLinesOptions {
  readonly contextId: string;
  readonly cellId: string;
  readonly fresh: boolean;
  readonly isTimedOut: () => boolean;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Called once at the end, with whether the client received the last line. */
  readonly onClose: (complete: boolean) => void;
}

/** A cell as JSON lines. */
export function cellLines(events: AsyncIterable<CellEvent>, options: CellLinesOptions): StreamAnswer {
  const body = Readable.from(lines(events, options), { objectMode: false, highWaterMark: BUFFER_BYTES });
  body.once("close", () => options.onClose(!options.signal.aborted));
  options.signal.addEventListener("abort", () => body.destroy(), { once: true });
  if (options.signal.aborted) body.destroy();
  return new StreamAnswer("application/x-ndjson", body);
}

async function* lines(events: AsyncIterable<CellEvent>, options: CellLinesOptions): AsyncGenerator<string> {
  let offset = 0;
  try {
    for await (const event of events) {
      ({ offset } = event);
      yield written(lineOf(event, options));
    }
  } catch (thrown) {
    if (thrown instanceof Moving) {
      yield written({ event: "moving", context_id: options.contextId, cell_id: options.cellId, offset });
      return;
    }
    const { code, message, hint } = asSandboxerError(thrown);
    yield written({ event: "error", code, message: cutMessage(message), hint });
  }
}

function lineOf(event: CellEvent, { contextId, cellId, fresh, isTimedOut }: CellLinesOptions): CellLine {
  const { offset } = event;
  const identity = { context_id: contextId, cell_id: cellId };
  switch (event.event) {
    case "started":
      return { event: "started", ...identity, execution_count: event.executionCount, fresh, offset };
    case "following":
      return { event: "following", ...identity, offset };
    case "stdout":
    case "stderr":
      return { event: event.event, data: event.text, time: new Date().toISOString(), offset };
    case "result":
      return { event: "result", result: event.result, offset };
    case "exception":
      return { event: "exception", ...event.exception, offset };
    case "end":
      return { event: "end", ...endOf(event, isTimedOut()), offset };
  }
}

/** The last facts about a cell. */
export function endOf(
  { status, executionCount, exit }: Extract<CellEvent, { event: "end" }>,
  timedOut: boolean,
): Omit<Extract<CellLine, { event: "end" }>, "event" | "offset"> {
  return {
    status,
    execution_count: executionCount,
    timed_out: timedOut,
    exit_code: exit?.code ?? null,
    signal: signalName(exit?.signal),
  };
}

function written(line: CellLine): string {
  return `${JSON.stringify(line)}\n`;
}
