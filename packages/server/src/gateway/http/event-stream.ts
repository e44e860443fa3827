import { Readable } from "node:stream";
import type { EventRecord } from "@sandboxer/protocol";
import type { EventLog } from "../../manager/events/event-log.ts";

export interface EventStreamOptions {
  readonly cursor: string | undefined;
  readonly wanted: (event: EventRecord) => boolean;
  readonly signal: AbortSignal;
}

/** A comment now and then shows both sides that the connection lives. */
const HEARTBEAT_MS = 15_000;
/** A reader that is so far behind is sent away; it comes back with its cursor. */
const MAX_WAITING = 5000;

/** What happened after the cursor, then what happens, as server-sent events. Without a cursor: only what happens. */
export function eventStream(log: EventLog, { cursor, wanted, signal }: EventStreamOptions): Readable {
  const waiting: EventRecord[] = cursor === undefined ? [] : log.after(cursor).filter(wanted);
  const start = log.end;
  let wake = (): void => {};
  const over = new AbortController();
  const end = (): void => {
    over.abort();
    wake();
  };
  const stopListening = log.listen((event) => {
    if (!wanted(event)) return;
    waiting.push(event);
    if (waiting.length > MAX_WAITING) end();
    wake();
  });
  signal.addEventListener("abort", end, { once: true });
  async function* lines(): AsyncGenerator<string> {
    try {
      yield `retry: 1000\nid: ${cursor ?? start}\n\n`;
      while (!over.signal.aborted) {
        const events = waiting.splice(0);
        if (events.length > 0) yield events.map(asLines).join("");
        else if (!(await arrival())) yield ": still here\n\n";
      }
    } finally {
      stopListening();
    }
  }
  /** Whether something came, or the end, before it was time to show that the connection lives. */
  function arrival(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), HEARTBEAT_MS);
      wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
  return Readable.from(lines(), { objectMode: false });
}

function asLines(event: EventRecord): string {
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
