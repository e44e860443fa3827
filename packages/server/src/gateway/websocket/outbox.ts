import type { Socket } from "node:net";
import { withoutExtensions } from "@sandboxer/protocol";
import type { CloseCode, SandboxerError, ServerEvent, Status, StatusName } from "@sandboxer/protocol";
import type { WebSocket } from "ws";
import { cutMessage } from "../../support/cut-message.ts";

/** Limit of unsent bytes; above it the source waits. */
const HIGH_WATER_BYTES = 256 * 1024;
/** The same for responses, which have no source that could wait; then the client's next message waits. */
const ANSWERS_HIGH_WATER_BYTES = 4 * 1024 * 1024;
const KEEP_ALIVE_MS = 30_000;

type StatusFields = Omit<Extract<ServerEvent, { event: "status_update" }>, "event" | "status" | "message">;

interface Unconfirmed {
  readonly sequence: number;
  readonly onConfirmed: () => void;
}

/**
 * The connection to one client. Data counts as delivered when the client has answered a ping that was sent after it: a
 * socket that accepted bytes says nothing about their arrival.
 */
export class Outbox {
  /** Whether the client asked for fields that the original protocol does not have. */
  extensions = false;
  readonly #socket: WebSocket;
  readonly #stream: Socket;
  readonly #unconfirmed: Unconfirmed[] = [];
  readonly #keepAlive: NodeJS.Timeout;
  #sequence = 0;
  /** Whether a ping follows at the end of this turn. */
  #asking = false;
  #heard = true;
  #closing = false;
  #onSettled: () => void = () => {};
  readonly #onClose: () => void;

  /** `onClose` is called when this side has sent its close frame. */
  constructor(socket: WebSocket, stream: Socket, onClose: () => void) {
    this.#socket = socket;
    this.#stream = stream;
    this.#onClose = onClose;
    socket.on("pong", (data: Buffer) => this.#onPong(data));
    // Detects a client that disappeared silently, and frees its sandbox for the next one.
    this.#keepAlive = setInterval(() => {
      // A client whose socket is not read cannot be checked.
      if (!this.#heard && !socket.isPaused) return socket.terminate();
      this.#heard = false;
      socket.ping();
    }, KEEP_ALIVE_MS);
    this.#keepAlive.unref();
    socket.on("close", () => {
      clearInterval(this.#keepAlive);
      this.#onSettled();
    });
  }

  get open(): boolean {
    return !this.#closing && this.#socket.readyState === this.#socket.OPEN;
  }

  send(event: ServerEvent): void {
    if (this.open) this.#socket.send(this.#encode(event));
  }

  /**
   * Sends events and learns of their arrival. The ping goes out in the same packet, so that a client that has seen the
   * events has nearly always answered, even if it disconnects right after. Events of one turn share one ping.
   */
  sendConfirmed(events: readonly ServerEvent[], onConfirmed: () => void): void {
    if (!this.open) return;
    if (!this.#asking) {
      this.#asking = true;
      this.#stream.cork();
      process.nextTick(() => this.#ask());
    }
    for (const event of events) this.#socket.send(this.#encode(event));
    this.#unconfirmed.push({ sequence: this.#sequence + 1, onConfirmed });
  }

  status(name: StatusName, more: StatusFields = {}): void {
    this.send({ event: "status_update", status: statusOf(name), ...more });
  }

  /** An error status and, right after it, the error. */
  error(name: StatusName, error: SandboxerError): void {
    const message = cutMessage(error.message);
    this.send({ event: "status_update", status: statusOf(name), message });
    this.send({ event: "error", message, code: error.code, hint: error.hint });
  }

  close(code: CloseCode): void {
    if (this.#closing) return;
    this.#socket.close(code);
    this.#closing = true;
    this.#onClose();
  }

  /** Resolves when the client has confirmed everything, disconnected, or used up its time. */
  settled(waitMs: number): Promise<void> {
    if (this.#unconfirmed.length === 0 || !this.open) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#onSettled = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Resolves when there is room for responses. */
  async roomForAnswers(): Promise<void> {
    await this.drained(ANSWERS_HIGH_WATER_BYTES);
  }

  /** Resolves when the client has read enough, or disconnected. */
  async drained(highWaterBytes = HIGH_WATER_BYTES): Promise<void> {
    while (this.open && this.#socket.bufferedAmount > highWaterBytes) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.#stream.off("drain", done);
          this.#stream.off("close", done);
          resolve();
        };
        this.#stream.once("drain", done);
        this.#stream.once("close", done);
      });
    }
  }

  #encode(event: ServerEvent): string {
    return JSON.stringify(this.extensions ? event : withoutExtensions(event));
  }

  #ask(): void {
    this.#asking = false;
    this.#sequence += 1;
    const mark = Buffer.allocUnsafe(8);
    mark.writeDoubleBE(this.#sequence);
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping(mark);
    this.#stream.uncork();
  }

  #onPong(data: Buffer): void {
    this.#heard = true;
    if (data.length !== 8) return;
    const sequence = data.readDoubleBE();
    while (this.#unconfirmed[0] !== undefined && this.#unconfirmed[0].sequence <= sequence) {
      this.#unconfirmed.shift()?.onConfirmed();
    }
    if (this.#unconfirmed.length === 0) this.#onSettled();
  }
}

export function statusOf(name: StatusName): Status {
  return `SANDBOX_${name}`;
}
