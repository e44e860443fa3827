import { SandboxerError } from "@sandboxer/protocol/errors";

/** Reads exact numbers of bytes from chunks of any size. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Undefined at the end; an end in the middle is an error. */
  async exactly(bytes: number): Promise<Uint8Array | undefined> {
    const whole = new Uint8Array(bytes);
    let filled = 0;
    while (filled < bytes) {
      const part = await this.atMost(bytes - filled);
      if (part === undefined && filled === 0) return undefined;
      if (part === undefined) throw cut();
      whole.set(part, filled);
      filled += part.length;
    }
    return whole;
  }

  /** The bytes of a part, as a stream. */
  async *pieces(bytes: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let left = bytes; left > 0;) {
      const part = await this.atMost(left);
      if (part === undefined) throw cut();
      left -= part.length;
      yield part;
    }
  }

  async skip(bytes: number): Promise<void> {
    for await (const _ of this.pieces(bytes));
  }

  async atMost(bytes: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done === true) return undefined;
      this.#rest = value;
    }
    const part = this.#rest.subarray(0, bytes);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}

function cut(): SandboxerError {
  return new SandboxerError("server_unreachable", "The tar archive is incomplete.", {
    hint: "The connection was lost or the sandbox ended. Try again.",
  });
}
