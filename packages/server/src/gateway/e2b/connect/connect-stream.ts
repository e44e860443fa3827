import type { FastifyReply } from "fastify";
import { connectErrorBody, type ConnectError } from "./connect-error.ts";
import { endFrame, messageFrame } from "./envelope.ts";

export const STREAM_TYPE = "application/connect+json";

/** The answer of a call as a stream of messages. Its status is always 200; an error is in the last frame. */
export class ConnectStream {
  readonly #raw: FastifyReply["raw"];
  readonly #closed = new AbortController();
  #lastSentMs = performance.now();

  constructor(reply: FastifyReply) {
    this.#raw = reply.raw;
    reply.hijack();
    const headers = { ...reply.getHeaders(), "content-type": STREAM_TYPE, "cache-control": "no-store" };
    this.#raw.once("close", () => this.#closed.abort());
    this.#raw.on("error", () => this.#closed.abort());
    if (this.#raw.destroyed) this.#closed.abort();
    else this.#raw.writeHead(200, headers as Record<string, string>).flushHeaders();
  }

  /** Aborts when the client has disconnected, and after the end. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get lastSentMs(): number {
    return this.#lastSentMs;
  }

  /** Resolves when there is room for the next message, or the client has disconnected. */
  async send(message: unknown): Promise<void> {
    if (this.closed.aborted) return;
    this.#lastSentMs = performance.now();
    if (this.#raw.write(messageFrame(message))) return;
    const drained = Promise.withResolvers<void>();
    this.#raw.once("drain", drained.resolve);
    this.closed.addEventListener("abort", () => drained.resolve(), { once: true });
    await drained.promise;
  }

  end(error?: ConnectError): void {
    if (!this.closed.aborted) this.#raw.end(endFrame(error === undefined ? undefined : connectErrorBody(error)));
  }

  /** Ends the connection without a last frame, as a deleted sandbox does. */
  cut(): void {
    this.#raw.socket?.destroy();
  }

  /**
   * Sends this message whenever nothing else was sent for this long, until the stream is closed. Not to a client that
   * does not read: the messages would pile up.
   */
  keepAlive(message: unknown, everyMs: number): void {
    const timer = setInterval(() => {
      const isSilent = performance.now() - this.#lastSentMs >= everyMs;
      if (isSilent && !this.#raw.writableNeedDrain) void this.send(message);
    }, everyMs / 4);
    timer.unref();
    this.closed.addEventListener("abort", () => clearInterval(timer), { once: true });
  }
}
