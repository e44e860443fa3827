import { type ClientOptions, WebSocket } from "ws";

/** Empty frames that the other side may send at once, and then per second. */
const BURST = 1_000;
const PER_SECOND = 100;
/** While more than this waits to be sent, a ping is not answered. */
const LITTLE_BYTES = 256 * 1024;
const LOOK_MS = 250;

/**
 * A WebSocket whose memory use the other side cannot inflate: every socket of the server is one, whichever side opened
 * it. A ping is answered while little waits to be sent; of several pings that arrive meanwhile only the last is
 * answered later, as RFC 6455 allows. Pings, unsolicited pongs and empty messages have a budget; a peer that exceeds it
 * is cut off.
 */
export class BoundedWebSocket extends WebSocket {
  /** How many of our pings may still be answered. */
  #asked = 0;
  #budget = BURST;
  #countedMs = performance.now();
  /** The content of the last unanswered ping. */
  #unanswered: Buffer | undefined;

  /** `address` is null for one that a WebSocketServer creates. */
  constructor(address: string | URL | null, protocols?: string | string[] | object, options?: ClientOptions) {
    super(address as string, protocols as string[], { ...options, autoPong: false });
    this.on("ping", (data) => this.#onPing(data));
    this.on("pong", () => {
      if (this.#asked > 0) this.#asked -= 1;
      else this.#spend();
    });
    this.on("message", (data: Buffer) => {
      if (data.length === 0) this.#spend();
    });
  }

  override ping(data?: Buffer): void {
    this.#asked += 1;
    super.ping(data);
  }

  #onPing(data: Buffer): void {
    this.#spend();
    const isWaiting = this.#unanswered !== undefined;
    // A copy: it is a view of a larger buffer.
    this.#unanswered = Buffer.from(data);
    if (!isWaiting) this.#answer();
  }

  #answer(): void {
    if (this.readyState !== this.OPEN) return;
    if (this.bufferedAmount > LITTLE_BYTES) return void setTimeout(() => this.#answer(), LOOK_MS).unref();
    this.pong(this.#unanswered, undefined, () => {});
    this.#unanswered = undefined;
  }

  #spend(): void {
    const nowMs = performance.now();
    this.#budget = Math.min(BURST, this.#budget + ((nowMs - this.#countedMs) / 1000) * PER_SECOND) - 1;
    this.#countedMs = nowMs;
    if (this.#budget < 0) this.terminate();
  }
}
