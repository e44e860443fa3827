import { Buffer } from "node:buffer";
import { PassThrough, Writable, type Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";

const HEADER_BYTES = 8;
const STDOUT = 1;
const STDERR = 2;
const LAST_WORDS_CHARACTERS = 8_000;

/**
 * Splits the output of an attached container without a terminal: pieces of both streams, each after a header of the
 * stream's number, three zeros and a big-endian length.
 * https://docs.docker.com/reference/api/engine/version/v1.45/#tag/Container/operation/ContainerAttach
 */
export class Demultiplexer extends Writable {
  readonly stdout: Readable;
  readonly #stdout = new PassThrough();
  #header = Buffer.alloc(0);
  #stream = 0;
  #left = 0;
  #lastWords = "";

  constructor() {
    super();
    this.stdout = this.#stdout;
  }

  /** The end of what came on stderr. */
  get lastWords(): string {
    return this.#lastWords;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    let rest = chunk;
    let roomLeft = true;
    while (rest.length > 0) {
      if (this.#left === 0) {
        const missing = HEADER_BYTES - this.#header.length;
        this.#header = Buffer.concat([this.#header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (this.#header.length < HEADER_BYTES) break;
        this.#stream = this.#header.readUInt8(0);
        this.#left = this.#header.readUInt32BE(4);
        this.#header = Buffer.alloc(0);
        if (this.#stream !== STDOUT && this.#stream !== STDERR) {
          return done(new SandboxerError("backend_unavailable", "Docker's attached stream is malformed."));
        }
        continue;
      }
      const piece = rest.subarray(0, this.#left);
      rest = rest.subarray(piece.length);
      this.#left -= piece.length;
      if (this.#stream === STDOUT) roomLeft = this.#stdout.write(piece);
      else this.#lastWords = (this.#lastWords + piece.toString("utf8")).slice(-LAST_WORDS_CHARACTERS);
    }
    if (roomLeft || this.#stdout.destroyed) done();
    else this.#stdout.once("drain", done);
  }

  override _final(done: () => void): void {
    this.#stdout.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stdout.destroy(error ?? undefined);
    done(error);
  }
}
