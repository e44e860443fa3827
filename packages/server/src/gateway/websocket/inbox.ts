import type { WebSocket } from "ws";

/** More than this many unhandled messages, and the client's socket is not read until they are fewer. */
const PAUSE_AT = 64;

/** Messages of one client, in order, kept until somebody is ready for them. A binary message is `undefined`. */
export class Inbox {
  readonly #socket: WebSocket;
  readonly #messages: (string | undefined)[] = [];
  #closed = false;
  #wake: () => void = () => {};

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      this.#messages.push(isBinary ? undefined : data.toString("utf8"));
      if (this.#messages.length >= PAUSE_AT) socket.pause();
      this.#wake();
    });
    socket.on("close", () => {
      this.#closed = true;
      this.#wake();
    });
  }

  /** The next message; `closed` when there will be none, `late` after the waiting time. */
  async next(waitMs?: number): Promise<{ text: string | undefined } | "closed" | "late"> {
    const deadline = waitMs === undefined ? undefined : performance.now() + waitMs;
    for (;;) {
      if (this.#closed) return "closed";
      if (this.#messages.length > 0) {
        const text = this.#messages.shift();
        if (this.#socket.isPaused && this.#messages.length < PAUSE_AT / 2) this.#socket.resume();
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
