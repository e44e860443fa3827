import type { SandboxConnection } from "../backend.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { agentError } from "./agent-error.ts";
import { Request } from "./frame-types.ts";
import { MalformedFrameError, PayloadWriter } from "./payload.ts";

const WINDOW_BYTES = 256 * 1024;
const WRITE_FRAME_BYTES = 64 * 1024;
/** A peer that does not read makes its writer wait at most this long. */
const WRITE_TIMEOUT_MS = 24 * 3_600_000;
/** More pieces than this are joined, so that a stream of single bytes costs little more than its bytes. */
const MAX_PIECES = 256;

/** A TCP connection to a port inside the sandbox, carried by the agent's frames, with a window for each direction. */
export class AgentTcp implements SandboxConnection {
  readonly #agent: AgentConnection;
  readonly #connection: number;
  readonly #onClosed: () => void;
  #chunks: Uint8Array[] = [];
  #received = 0;
  #consumed = 0;
  #limit = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: () => void = () => {};

  constructor(agent: AgentConnection, connection: number, onClosed: () => void) {
    this.#agent = agent;
    this.#onClosed = onClosed;
    this.#connection = connection;
    this.#openWindow();
  }

  get data(): AsyncIterable<Uint8Array> {
    return this.#read();
  }

  async write(data: Uint8Array): Promise<void> {
    for (let start = 0; start < data.length; start += WRITE_FRAME_BYTES) {
      const payload = new PayloadWriter().u32(this.#connection).bytes(data.subarray(start, start + WRITE_FRAME_BYTES));
      await this.#agent.request(Request.connectionWrite, payload, { timeoutMs: WRITE_TIMEOUT_MS });
    }
  }

  async end(): Promise<void> {
    await this.#agent.request(Request.connectionWrite, new PayloadWriter().u32(this.#connection));
  }

  async close(): Promise<void> {
    if (this.#agent.failure !== undefined) return;
    await this.#agent.request(Request.connectionClose, new PayloadWriter().u32(this.#connection)).catch(() => {});
    this.onClosed(0);
  }

  onData(data: Uint8Array): void {
    if (data.length === 0) {
      this.#ended = true;
    } else {
      this.#received += data.length;
      if (this.#received > this.#limit) throw new MalformedFrameError("connection data outside of its window");
      this.#chunks.push(data);
      if (this.#chunks.length > MAX_PIECES) this.#chunks = [Buffer.concat(this.#chunks)];
    }
    this.#wake();
  }

  onClosed(errno: number): void {
    this.#ended = true;
    this.#onClosed();
    if (errno !== 0) this.#error ??= agentError(errno, `The connection ended with error ${errno}.`);
    this.#wake();
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        this.#consumed += chunk.length;
        if (this.#limit - this.#consumed < WINDOW_BYTES / 2) this.#openWindow();
      } else if (this.#ended) {
        if (this.#error !== undefined) throw this.#error;
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  #openWindow(): void {
    this.#limit = this.#consumed + WINDOW_BYTES;
    this.#agent.send(Request.connectionWindow, new PayloadWriter().u32(this.#connection).u64(this.#limit));
  }
}
