/** The limit of waiting bytes. */
const WAITING_BYTES = 4 * 1024 * 1024;

/** Chunks from a producer to a consumer; the producer waits while much is waiting. */
export class ChunkChannel implements AsyncIterable<Uint8Array> {
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #ended = false;
  #failure: Error | undefined;
  #wake = Promise.withResolvers<void>();

  async push(chunk: Uint8Array): Promise<void> {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.byteLength;
    this.#changed();
    while (this.#waitingBytes > WAITING_BYTES && this.#failure === undefined) await this.#wake.promise;
    if (this.#failure !== undefined) throw this.#failure;
  }

  end(): void {
    this.#ended = true;
    this.#changed();
  }

  /** For both sides: neither waits any longer. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#changed();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) {
        this.#waitingBytes -= chunk.byteLength;
        this.#changed();
        yield chunk;
      } else if (this.#ended) return;
      else await this.#wake.promise;
    }
  }

  #changed(): void {
    const woken = this.#wake;
    this.#wake = Promise.withResolvers();
    woken.resolve();
  }
}
