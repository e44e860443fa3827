import { Readable } from "node:stream";
import type { CellResult } from "@sandboxer/protocol";
import type { CellEvent } from "../../../manager/interpreter/run-cell.ts";

/** E2B's clients give up on a connection that is silent. */
const KEEPALIVE_MS = 5_000;
const BUFFER_BYTES = 64 * 1024;

export interface ExecutionOptions {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Called once at the end. */
  readonly onClose: () => void;
}

/** A cell as E2B's lines of JSON. */
export function executionLines(events: AsyncIterable<CellEvent>, { signal, onClose }: ExecutionOptions): Readable {
  const body = Readable.from(lines(events), { objectMode: false, highWaterMark: BUFFER_BYTES });
  body.once("close", onClose);
  signal.addEventListener("abort", () => body.destroy(), { once: true });
  if (signal.aborted) body.destroy();
  return body;
}

async function* lines(events: AsyncIterable<CellEvent>): AsyncGenerator<string> {
  const each = events[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = each.next();
      let event = await within(next);
      while (event === undefined) {
        yield written({ type: "keepalive" });
        event = await within(next);
      }
      if (event.done === true) break;
      for (const line of linesOf(event.value)) yield written(line);
      if (event.value.event === "end") return;
    }
    yield written({ type: "unexpected_end_of_execution" });
  } catch {
    // The sandbox is saved, moved or lost.
    yield written({ type: "unexpected_end_of_execution" });
  } finally {
    await each.return?.();
  }
}

/** Undefined: it takes longer. */
async function within<Value>(promise: Promise<Value>): Promise<Value | undefined> {
  const silence = Promise.withResolvers<undefined>();
  const timer = setTimeout(silence.resolve, KEEPALIVE_MS, undefined);
  return Promise.race([promise, silence.promise]).finally(() => clearTimeout(timer));
}

function linesOf(event: CellEvent): readonly object[] {
  switch (event.event) {
    case "started":
      return [{ type: "number_of_executions", execution_count: event.executionCount }];
    case "following":
      return [];
    case "stdout":
    case "stderr":
      return [{ type: event.event, text: event.text, timestamp: new Date().toISOString() }];
    case "result":
      return [{ type: "result", ...resultOf(event.result) }];
    case "exception":
      return [{ type: "error", ...event.exception }];
    case "end":
      return [{ type: event.status === "died" ? "unexpected_end_of_execution" : "end_of_execution" }];
  }
}

/** E2B's names; a data frame is its columns. */
function resultOf({ main, text, table, ...formats }: CellResult): object {
  const data = table?.columns.map((name, column) => [name, table.rows.map((row) => row[column] ?? null)] as const);
  return {
    is_main_result: main,
    ...(text === undefined ? {} : { text: withoutQuotes(text) }),
    ...formats,
    ...(data === undefined ? {} : { data: Object.fromEntries(data) }),
  };
}

/** The text of a string is the string. */
function withoutQuotes(text: string): string {
  return /^'.*'$|^".*"$/s.test(text) && text.length > 1 ? text.slice(1, -1) : text;
}

function written(line: object): string {
  return `${JSON.stringify(line)}\n`;
}
