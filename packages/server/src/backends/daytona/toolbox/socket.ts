import { once } from "node:events";
import { SandboxerError } from "@sandboxer/protocol";
import type { WebSocket } from "ws";
import { BoundedWebSocket } from "../../../support/bounded-web-socket.ts";

const OPEN_TIMEOUT_MS = 30_000;
const KEEPALIVE_MS = 30_000;
const HIGH_WATER_BYTES = 256 << 10;

export interface SocketMessage {
  readonly data: Buffer;
  readonly binary: boolean;
}

export interface SocketEnd {
  readonly code: number;
  readonly reason: string;
}

/**
 * A WebSocket that is read on demand: unrequested messages stay with the sender. If the other end is silent, even to
 * pings, it is closed.
 */
export class Socket {
  readonly #socket: WebSocket;
  readonly #queue: SocketMessage[] = [];
  #queuedBytes = 0;
  #wake: (() => void) | undefined;
  readonly #keepalive: NodeJS.Timeout;
  #alive = true;
  #end: SocketEnd | undefined;

  constructor(socket: WebSocket, keepaliveMs = KEEPALIVE_MS) {
    this.#socket = socket;
    this.#keepalive = setInterval(() => this.#askForLife(), keepaliveMs).unref();
    socket.on("pong", () => (this.#alive = true));
    socket.on("message", (data, binary) => this.#take({ data: data as Buffer, binary }));
    socket.on("close", (code, reason) => this.#finish({ code, reason: reason.toString("utf8") }));
    socket.on("error", () => {
      // The connection's problem follows as its close.
    });
  }

  /** Undefined once the socket is closed and all messages before that were read. */
  get end(): SocketEnd | undefined {
    return this.#queue.length === 0 ? this.#end : undefined;
  }

  async *messages(): AsyncGenerator<SocketMessage> {
    for (;;) {
      const next = this.#queue.shift();
      if (next !== undefined) {
        this.#queuedBytes -= next.data.length;
        if (this.#socket.isPaused && this.#queuedBytes < HIGH_WATER_BYTES / 2) this.#socket.resume();
        yield next;
      } else if (this.#end !== undefined) {
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  send(data: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => this.#socket.send(data, (error) => (error ? reject(error) : resolve())));
  }

  close(): void {
    this.#socket.terminate();
    this.#finish({ code: 1006, reason: "" });
  }

  /** While nothing is read, no pong can be seen. */
  #askForLife(): void {
    if (this.#socket.readyState !== this.#socket.OPEN || this.#socket.isPaused) return;
    if (!this.#alive) return this.#socket.terminate();
    this.#alive = false;
    this.#socket.ping();
  }

  #take(message: SocketMessage): void {
    this.#alive = true;
    this.#queue.push(message);
    this.#queuedBytes += message.data.length;
    if (this.#queuedBytes >= HIGH_WATER_BYTES) this.#socket.pause();
    this.#wake?.();
  }

  #finish(end: SocketEnd): void {
    clearInterval(this.#keepalive);
    this.#end ??= end;
    this.#wake?.();
  }
}

/** The error names the request, and none of the headers. */
export async function openSocket(
  url: string,
  headers: Readonly<Record<string, string>>,
  protocols: readonly string[] = [],
): Promise<Socket> {
  const socket = new BoundedWebSocket(url.replace(/^http/, "ws"), [...protocols], {
    headers,
    handshakeTimeout: OPEN_TIMEOUT_MS,
    followRedirects: false,
    perMessageDeflate: false,
  });
  const wrapped = new Socket(socket);
  try {
    await once(socket, "open");
    return wrapped;
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : "no reason";
    throw new SandboxerError(
      "backend_unavailable",
      `Daytona's toolbox refused a stream (${new URL(url).pathname}): ${reason}`,
    );
  }
}
