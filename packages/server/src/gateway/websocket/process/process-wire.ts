import { CloseCode, encodeOutputFrame } from "@sandboxer/protocol";
import type { OutputFrame, ProcessEvent, SandboxerError } from "@sandboxer/protocol";
import type { WebSocket } from "ws";
import { cutMessage } from "../../../support/cut-message.ts";

const KEEP_ALIVE_MS = 30_000;
/** Above this, producers of the client's events wait. */
const HIGH_WATER_BYTES = 256 * 1024;
const LOOK_MS = 20;

/** The connection to the client of one process. */
export class ProcessWire {
  readonly #socket: WebSocket;
  readonly #gone = new AbortController();
  #heard = true;
  #closing = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    // Detects a client that disappeared silently.
    const keepAlive = setInterval(() => {
      if (!this.#heard && !socket.isPaused) return socket.terminate();
      this.#heard = false;
      socket.ping();
    }, KEEP_ALIVE_MS).unref();
    socket.on("pong", () => (this.#heard = true));
    // A message that is too large, or an invalid frame: ws closes the socket with the right code.
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(keepAlive);
      this.#gone.abort();
    });
  }

  /** Aborts when the client disconnects or is sent away. */
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

  /** The close frame. Later messages of the client are still read, so that it can close too. */
  close(code: CloseCode): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#socket.close(code);
    if (this.#socket.isPaused) this.#socket.resume();
    this.#gone.abort();
  }

  /** Resolves when the client has read enough, or disconnected. */
  async drained(): Promise<void> {
    while (!this.gone.aborted && this.#socket.bufferedAmount > HIGH_WATER_BYTES) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
