import type { OutputFrame } from "@sandboxer/protocol";

/** How long to wait for the rest of a line. */
const HOLD_MS = 1;
/** Longer pieces are sent at once. */
const MAX_HELD_BYTES = 4 * 1024;
const LINE_FEED = 0x0a;

/** Joins pieces of a line that arrive within a millisecond: a `print` that writes two pieces is sent as one. */
export class JoinedOutput {
  readonly #send: (chunk: OutputFrame) => void;
  #held: OutputFrame | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (chunk: OutputFrame) => void) {
    this.#send = send;
  }

  take(chunk: OutputFrame): void {
    const held = this.#held;
    const goesOn = held?.stream === chunk.stream && held.offset + held.data.length === chunk.offset;
    if (!goesOn) this.flush();
    this.#held = goesOn ? { ...held, data: Buffer.concat([held.data, chunk.data]) } : chunk;
    const { data } = this.#held;
    if (data.at(-1) === LINE_FEED || data.length >= MAX_HELD_BYTES) return this.flush();
    // A busy process handles timers before sockets: this detour lets it read output that has already arrived.
    this.#timer ??= setTimeout(() => setImmediate(() => this.flush()), HOLD_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#send(held);
  }
}
