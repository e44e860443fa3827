import type { WebSocket } from "ws";

/** With more unhandled messages or bytes than this, the client's socket is not read until there are fewer. */
const PAUSE_AT = 64;
const PAUSE_AT_BYTES = 1024 * 1024;

/** The messages of one client, in order, kept until they are handled. A binary message is `undefined`. */
export class Inbox {
  readonly #socket: WebSocket;
  readonly #messages: (string | undefined)[] = [];
  #waitingBytes = 0;
  #closed = false;
  #wake: () => void = () => {};

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (this.#closed) return;
      const text = isBinary ? undefined : data.toString("utf8");
      this.#messages.push(text);
      this.#waitingBytes += text?.length ?? 0;
      if (this.#messages.length >= PAUSE_AT || this.#waitingBytes >= PAUSE_AT_BYTES) socket.pause();
      this.#wake();
    });
    socket.on("close", () => this.end());
  }

  /** All messages, received or not, are ignored from now on. */
  end(): void {
    this.#closed = true;
    this.#messages.length = 0;
    // The client's close frame is read as well.
    if (this.#socket.isPaused) this.#socket.resume();
    this.#wake();
  }

  /** The next message; `closed` if there will be none, `late` after the time limit. */
  async next(waitMs?: number): Promise<{ text: string | undefined } | "closed" | "late"> {
    const deadline = waitMs === undefined ? undefined : performance.now() + waitMs;
    for (;;) {
      if (this.#closed) return "closed";
      if (this.#messages.length > 0) {
        const text = this.#messages.shift();
        this.#waitingBytes -= text?.length ?? 0;
        const few = this.#messages.length < PAUSE_AT / 2 && this.#waitingBytes < PAUSE_AT_BYTES / 2;
        if (this.#socket.isPaused && few) this.#socket.resume();
        return { text };
      }
      const leftMs = deadline === undefined ? undefined : deadline - performance.now();
      if (leftMs !== undefined && leftMs <= 0) return "late";
      await this.#arrival(leftMs);
    }
  }

  #arrival(waitMs: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = waitMs === undefined ? undefined : setTimeout(resolve, waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
