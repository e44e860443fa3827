import { Duplex } from "node:stream";
import type { OpenPort } from "../../manager/ports/port-verbs.ts";

type Done = (error?: Error | null) => void;

/**
 * A connection to a port inside as a Node stream, read and written as fast as both sides allow. The program does not
 * see the end of the writing side: a connection inside has no half-open state.
 */
export class ConnectionStream extends Duplex {
  readonly #port: OpenPort;
  readonly #incoming: AsyncIterator<Uint8Array>;

  constructor(port: OpenPort) {
    super();
    this.#port = port;
    this.#incoming = port.connection.data[Symbol.asyncIterator]();
  }

  override _read(): void {
    this.#incoming.next().then(
      ({ done, value }) => this.push(done === true ? null : value),
      (error: Error) => this.destroy(error),
    );
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: Done): void {
    void settle(this.#port.connection.write(chunk), done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#port.release();
    void settle(this.#port.connection.close(), () => done(error));
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
