import { Readable } from "node:stream";
import { asSandboxerError, type CellLine } from "@sandboxer/protocol";
import type { CellEvent } from "../../manager/interpreter/run-cell.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { signalName } from "../../manager/processes/signals.ts";
import { cutMessage } from "../../support/cut-message.ts";
import { StreamAnswer, TextAnswer } from "./handler.ts";

const NDJSON = "application/x-ndjson";
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
  return streamed(lines(events, options), options);
}

/** The same lines, in one piece if the cell ends within this time and with little output: most cells do. */
export async function joinedCellLines(
  events: AsyncIterable<CellEvent>,
  options: CellLinesOptions,
  waitMs: number,
): Promise<StreamAnswer | TextAnswer> {
  const source = lines(events, options);
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), waitMs);
  let joined = "";
  let next = source.next();
  for (;;) {
    const read = joined.length < BUFFER_BYTES ? await Promise.race([next, late.promise]) : undefined;
    if (read === undefined) break;
    if (read.done === true) {
      clearTimeout(timer);
      options.onClose(!options.signal.aborted);
      return new TextAnswer(NDJSON, joined);
    }
    joined += read.value;
    next = source.next();
  }
  clearTimeout(timer);
  const rest = streamed(continued(joined, next, source), options);
  // Also if the client has gone before anything of the rest was read.
  rest.body.once("close", () => void source.return(undefined).catch(() => {}));
  return rest;
}

async function* continued(
  joined: string,
  next: Promise<IteratorResult<string, void>>,
  source: AsyncIterator<string, void>,
): AsyncGenerator<string> {
  yield joined;
  for (let read = await next; read.done !== true; read = await source.next()) yield read.value;
}

function streamed(texts: AsyncIterable<string>, options: CellLinesOptions): StreamAnswer {
  const body = Readable.from(texts, { objectMode: false, highWaterMark: BUFFER_BYTES });
  body.once("close", () => options.onClose(!options.signal.aborted));
  options.signal.addEventListener("abort", () => body.destroy(), { once: true });
  if (options.signal.aborted) body.destroy();
  return new StreamAnswer(NDJSON, body);
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
