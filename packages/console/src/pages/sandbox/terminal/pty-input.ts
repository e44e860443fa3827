import { SandboxerError } from "@sandboxer/client";

/**
 * Typed input, in order, one write at a time. Unsent input waits for the next connection. A write that was in flight
 * when a connection broke is not repeated: a command must not run twice.
 */
export class PtyInput {
  #pending: Uint8Array[] = [];
  #send: ((data: Uint8Array) => Promise<void>) | undefined;
  #sending = false;
  readonly #onDoubt: () => void;

  /** `onDoubt`: input was in flight when a connection broke. */
  constructor(onDoubt: () => void) {
    this.#onDoubt = onDoubt;
  }

  write(data: Uint8Array): void {
    this.#pending.push(data);
    void this.#pump();
  }

  connected(send: (data: Uint8Array) => Promise<void>): void {
    this.#send = send;
    void this.#pump();
  }

  disconnected(): void {
    this.#send = undefined;
  }

  async #pump(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.#send !== undefined && this.#pending.length > 0) {
        const data = joined(this.#pending);
        this.#pending = [];
        try {
          await this.#send(data);
        } catch (thrown) {
          const doubtful = thrown instanceof SandboxerError && thrown.code === "server_unreachable";
          if (!doubtful) return void this.#pending.unshift(data);
          this.#onDoubt();
        }
      }
    } finally {
      this.#sending = false;
    }
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
