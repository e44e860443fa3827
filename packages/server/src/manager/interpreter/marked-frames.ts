import { StringDecoder } from "node:string_decoder";
import type { OutputChunk } from "../../backends/backend.ts";
import { FrameReader, type Frame, type FrameSource, type ReceivedFrame } from "./frames.ts";

const MARK = 0x1e;
const MARKS = Buffer.from([MARK, MARK]);
const ID_LENGTH = 36;
/** A longer one is output. */
const MAX_MARKED_BYTES = 64 * 1024;

interface Stream {
  /** The beginning of a marked frame. */
  rest: Buffer;
  /** Its own, because the two streams may arrive in any order: one may end while a frame of the other is in parts. */
  readonly inner: FrameReader;
  readonly decoder: StringDecoder;
  /** Between the beginning and the end of the cell. */
  active: boolean;
}

/**
 * The frames of interpreters that cannot print to descriptors of their own, as bash and node. Their programs print to
 * stdout and stderr, and frames are between: `RS RS {cell id} {frame} RS`. The id is the mark that a program does not
 * know. A cell begins and ends with `start` and `end` on both streams; everything else on stderr is output.
 */
export class MarkedFrameReader implements FrameSource {
  /** Only its frames count; undefined: those of the cell that began last. */
  readonly #only: string | undefined;
  #cell: string | undefined;
  #end: Frame | undefined;
  #ends = 0;
  readonly #streams: Readonly<Record<OutputChunk["stream"], Stream>>;

  /** `begun`: the beginning of the cell was read before. */
  constructor({ only, begun = false }: { readonly only?: string | undefined; readonly begun?: boolean } = {}) {
    this.#only = only;
    this.#cell = begun ? only : undefined;
    const stream = (): Stream => ({
      rest: Buffer.alloc(0),
      inner: new FrameReader(),
      decoder: new StringDecoder("utf8"),
      active: begun,
    });
    this.#streams = { stdout: stream(), stderr: stream() };
  }

  *read({ stream: name, offset, data }: OutputChunk): Generator<ReceivedFrame> {
    const stream = this.#streams[name];
    const received = (frame: Frame): ReceivedFrame => ({ frame, offset: offset + data.length });
    let bytes = stream.rest.length === 0 ? Buffer.from(data) : Buffer.concat([stream.rest, data]);
    stream.rest = Buffer.alloc(0);
    let text = "";
    while (bytes.length > 0) {
      const begin = bytes.indexOf(MARKS);
      const end = begin === -1 ? -1 : bytes.indexOf(MARK, begin + 2);
      const isWhole = end !== -1 && end - begin <= MAX_MARKED_BYTES;
      // It may continue in the next chunk.
      const mayContinue = begin !== -1 && end === -1 && bytes.length - begin <= MAX_MARKED_BYTES;
      if (mayContinue) {
        stream.rest = Buffer.from(bytes.subarray(begin));
        bytes = bytes.subarray(0, begin);
      } else if (begin === -1 && bytes.at(-1) === MARK) {
        stream.rest = Buffer.from([MARK]);
        bytes = bytes.subarray(0, -1);
      }
      const frames = isWhole ? this.#marked(bytes.subarray(begin + 2, end), stream.inner) : undefined;
      // The mark itself may begin at the next byte.
      const textEnd = begin === -1 || mayContinue ? bytes.length : frames === undefined ? begin + 1 : begin;
      text += stream.decoder.write(bytes.subarray(0, textEnd));
      for (const frame of frames ?? []) {
        if (stream.active && text !== "") yield received({ f: "out", s: name, d: text });
        text = "";
        const answer = this.#take(frame, stream);
        if (answer !== undefined) yield received(answer);
      }
      bytes = bytes.subarray(frames === undefined ? textEnd : end + 1);
    }
    if (stream.active && text !== "") yield received({ f: "out", s: name, d: text });
  }

  /** Undefined: it is output that looks like a frame. */
  #marked(bytes: Buffer, inner: FrameReader): readonly Frame[] | undefined {
    const id = bytes.toString("latin1", 0, ID_LENGTH);
    if (this.#only !== undefined && id !== this.#only) return undefined;
    const line = Buffer.concat([bytes.subarray(ID_LENGTH), Buffer.from("\n")]);
    const frames = [...inner.read({ stream: "stdout", offset: 0, data: line })].map(({ frame }) => frame);
    const isBeginning = frames[0]?.f === "start" && frames[0].id === id;
    return id === this.#cell || isBeginning ? frames : undefined;
  }

  #take(frame: Frame, stream: Stream): Frame | undefined {
    if (frame.f === "start") {
      stream.active = true;
      if (this.#cell === frame.id) return undefined;
      [this.#cell, this.#end, this.#ends] = [frame.id, undefined, 0];
      return frame;
    }
    if (frame.f !== "end") return frame;
    stream.active = false;
    this.#ends += 1;
    this.#end ??= frame;
    if (this.#ends < 2) return undefined;
    this.#cell = undefined;
    return this.#end;
  }
}
