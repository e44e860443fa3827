import type { SandboxCalls } from "../sandbox-calls.ts";
import type { AttachSocket } from "./attach-socket.ts";
import type { OutputQueue } from "./output-queue.ts";

export interface SilenceOptions {
  readonly calls: SandboxCalls;
  readonly processId: string;
  /** How long a silent connection is trusted. */
  readonly silenceMs: number;
}

/**
 * Distinguishes a silent program from a dead connection, which scripts cannot see on a WebSocket. After a silence the
 * server is asked over HTTP; a socket that has fallen behind is closed.
 */
export class SilenceWatch {
  readonly #options: SilenceOptions;
  readonly #queue: OutputQueue;
  readonly #socket: AttachSocket;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;
  /** The missing output at the last check: if it is still missing, the socket is dead. */
  #missed: number | undefined;

  constructor(options: SilenceOptions, queue: OutputQueue, socket: AttachSocket) {
    this.#options = options;
    this.#queue = queue;
    this.#socket = socket;
    this.heard();
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#missed = undefined;
    if (!this.#stopped) this.#wait();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #wait(): void {
    this.#timer = setTimeout(() => void this.#look(), this.#options.silenceMs);
  }

  async #look(): Promise<void> {
    const { calls, processId, silenceMs } = this.#options;
    // If the reader is behind, the server rightly holds back the rest.
    if (!this.#queue.isEmpty) return this.#wait();
    const { received } = this.#queue;
    const says = await calls.transport
      .call(
        "getProcess",
        { params: { id: calls.sandboxId, process_id: processId } },
        { url: calls.url, attempts: 1, signal: AbortSignal.timeout(silenceMs) },
      )
      .catch(() => undefined);
    if (this.#stopped || received !== this.#queue.received) return;
    const behind =
      says === undefined || received === undefined || says.state === "exited" || says.output_end > received;
    if (behind && this.#missed === (received ?? 0)) return this.#socket.close();
    this.#missed = behind ? (received ?? 0) : undefined;
    this.#wait();
  }
}
