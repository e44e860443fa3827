import { Readable } from "node:stream";
import { type EventRecord, SandboxerError } from "@sandboxer/protocol";
import type { EventLog } from "../../manager/observing/events/event-log.ts";

const MAX_PER_CALLER = 64;

export interface EventStreamOptions {
  readonly cursor: string | undefined;
  /** The events after the cursor, of all servers, until `end` of this one or later; absent: those of this server. */
  readonly earlier?: { readonly events: readonly EventRecord[]; readonly end: string } | undefined;
  /** Whether another server records these events now. Then the stream ends, and its reader finds that server. */
  readonly hasMoved?: (() => Promise<boolean>) | undefined;
  readonly wanted: (event: EventRecord) => boolean;
  readonly signal: AbortSignal;
}

/** A regular comment shows both sides that the connection works. */
const HEARTBEAT_MS = 15_000;
/** For streams of a sandbox that this server does not run; the others read nothing. */
const LOOK_EVERY_MS = 5_000;
/** A reader that is this far behind is disconnected; it can reconnect with its cursor. */
const MAX_WAITING = 5000;

/** The events after the cursor and then new ones, as server-sent events. Without a cursor: only new ones. */
export function eventStream(
  log: EventLog,
  { cursor, earlier, hasMoved, wanted, signal }: EventStreamOptions,
): Readable {
  const known = new Set(earlier?.events.map((event) => event.cursor));
  const newer = cursor === undefined ? [] : log.after(earlier?.end ?? cursor);
  const waiting = [...(earlier?.events ?? []), ...newer.filter((event) => !known.has(event.cursor))].filter(wanted);
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
      clearInterval(look);
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
  // An unavailable store says nothing about the sandbox.
  const endIfMoved = (): void =>
    void hasMoved?.().then(
      (moved) => moved && waiting.length === 0 && stream.push(null),
      () => {},
    );
  const look = hasMoved === undefined ? undefined : setInterval(endIfMoved, LOOK_EVERY_MS);
  stream.push(`retry: 1000\nid: ${cursor ?? log.end}\n\n`);
  signal.addEventListener("abort", () => stream.destroy(), { once: true });
  if (signal.aborted) stream.destroy();
  return stream;
}

function asLines(event: EventRecord): string {
  return `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The followers of events. Each holds a connection and a queue, so their number is limited. */
export class Followers {
  readonly #max: number;
  readonly #byCaller = new Map<string, number>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** A stream keeps its place until it is closed. */
  admitted(callerId: string, open: () => Readable): Readable {
    const own = this.#byCaller.get(callerId) ?? 0;
    if (own >= MAX_PER_CALLER) throw full(`You already follow events ${own} times, which is the limit.`);
    if (this.#count >= this.#max)
      throw full(`The server already has ${this.#count} event followers, which is its limit.`);
    const stream = open();
    this.#byCaller.set(callerId, own + 1);
    this.#count += 1;
    stream.once("close", () => this.#leave(callerId));
    return stream;
  }

  #leave(callerId: string): void {
    const left = (this.#byCaller.get(callerId) ?? 1) - 1;
    if (left === 0) this.#byCaller.delete(callerId);
    else this.#byCaller.set(callerId, left);
    this.#count -= 1;
  }
}

function full(message: string): SandboxerError {
  return new SandboxerError("limit_reached", message, {
    hint: "Close unused event streams, or raise the server's --max-clients.",
  });
}
