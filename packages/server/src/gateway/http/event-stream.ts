import { Readable } from "node:stream";
import type { EventRecord } from "@sandboxer/protocol";
import type { EventLog } from "../../manager/observing/events/event-log.ts";

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
  let hasRoom = false;
  const send = (otherwise?: string): void => {
    if (!hasRoom) return;
    const text = waiting.length === 0 ? otherwise : waiting.splice(0).map(asLines).join("");
    if (text === undefined) return;
    hasRoom = false;
    stream.push(text);
  };
  const stream = new Readable({
    read: () => {
      hasRoom = true;
      send();
    },
    destroy: (error, done) => {
      stopListening();
      clearInterval(heartbeat);
      waiting.length = 0;
      done(error);
    },
  });
  const stopListening = log.listen((event) => {
    if (!wanted(event)) return;
    waiting.push(event);
    if (waiting.length > MAX_WAITING) stream.destroy();
    else send();
  });
  const heartbeat = setInterval(() => send(": still here\n\n"), HEARTBEAT_MS);
  stream.push(`retry: 1000\nid: ${cursor ?? log.end}\n\n`);
  signal.addEventListener("abort", () => stream.destroy(), { once: true });
  if (signal.aborted) stream.destroy();
  return stream;
}

function asLines(event: EventRecord): string {
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
