import { CloseCode, encodeOutputFrame } from "@sandboxer/protocol";
import type { OutputFrame, ProcessEvent, SandboxerError } from "@sandboxer/protocol";
import type { WebSocket } from "ws";
import { cutMessage } from "../../../support/cut-message.ts";

const KEEP_ALIVE_MS = 30_000;
/** Above this, whoever makes the client's events waits. */
const HIGH_WATER_BYTES = 256 * 1024;
const LOOK_MS = 20;

/** The way to the client of one process. */
export class ProcessWire {
  readonly #socket: WebSocket;
  readonly #gone = new AbortController();
  #heard = true;
  #closing = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    // A client that vanished without a word is noticed.
    const keepAlive = setInterval(() => {
      if (!this.#heard && !socket.isPaused) return socket.terminate();
      this.#heard = false;
      socket.ping();
    }, KEEP_ALIVE_MS).unref();
    socket.on("pong", () => (this.#heard = true));
    // Too large a message, or a frame that breaks the protocol: ws closes the socket with the right code by itself.
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(keepAlive);
      this.#gone.abort();
    });
  }

  /** Aborts when the client has gone, or was sent away. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  event(event: ProcessEvent): void {
    if (!this.#closing) this.#socket.send(JSON.stringify(event));
  }

  output(frame: OutputFrame): void {
    if (!this.#closing) this.#socket.send(encodeOutputFrame(frame));
  }

  error({ code, message, hint, details }: SandboxerError): void {
    this.event({ event: "error", code, message: cutMessage(message), hint, details });
    this.close(CloseCode.applicationError);
  }

  /** The last word. What the client still says is read, so that it can say its own. */
  close(code: CloseCode): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#socket.close(code);
    if (this.#socket.isPaused) this.#socket.resume();
    this.#gone.abort();
  }

  /** Resolves when the client has taken enough of what was sent, or is gone. */
  async drained(): Promise<void> {
    while (!this.gone.aborted && this.#socket.bufferedAmount > HIGH_WATER_BYTES) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
