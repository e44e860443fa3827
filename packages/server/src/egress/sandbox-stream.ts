import { Duplex } from "node:stream";
import type { SandboxConnection } from "../backends/backend.ts";

type Done = (error?: Error | null) => void;

const BUFFER_BYTES = 256 * 1024;

/** A connection from inside a sandbox as a stream, which counts its bytes. */
export class SandboxStream extends Duplex {
  /** Bytes from and to the sandbox. */
  sent = 0;
  received = 0;
  readonly #connection: SandboxConnection;
  readonly #data: AsyncIterator<Uint8Array>;
  #reading = false;

  constructor(connection: SandboxConnection) {
    super({ allowHalfOpen: true, readableHighWaterMark: BUFFER_BYTES, writableHighWaterMark: BUFFER_BYTES });
    this.#connection = connection;
    this.#data = connection.data[Symbol.asyncIterator]();
  }

  override _read(): void {
    if (!this.#reading) void this.#readMore();
  }

  async #readMore(): Promise<void> {
    this.#reading = true;
    try {
      for (;;) {
        const { done, value } = await this.#data.next();
        if (done === true) {
          this.push(null);
          return;
        }
        this.sent += value.length;
        if (!this.push(value)) return;
      }
    } catch (error) {
      this.destroy(error as Error);
    } finally {
      this.#reading = false;
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    void this.#send(chunk, done);
  }

  override _writev(chunks: { readonly chunk: Buffer }[], done: Done): void {
    void this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: Done): void {
    void settle(this.#connection.end?.() ?? Promise.resolve(), done);
  }

  override _destroy(error: Error | null, done: Done): void {
    void settle(
      this.#connection.close().catch(() => {}),
      () => done(error),
    );
  }

  #send(bytes: Buffer, done: Done): Promise<void> {
    this.received += bytes.length;
    return settle(this.#connection.write(bytes), done);
  }
}

async function settle(work: Promise<void>, done: Done): Promise<void> {
  try {
    await work;
  } catch (error) {
    return done(error as Error);
  }
  done();
}
