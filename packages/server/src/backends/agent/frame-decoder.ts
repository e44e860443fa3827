import { Buffer } from "node:buffer";
import { MAX_FRAME_BYTES } from "./frame-types.ts";
import { MalformedFrameError } from "./payload.ts";

export interface Frame {
  readonly type: number;
  readonly request: number;
  readonly payload: Buffer;
}

const LENGTH_BYTES = 4;
const HEADER_BYTES = 5;

export function encodeFrame(type: number, request: number, payload: Uint8Array): Buffer {
  if (HEADER_BYTES + payload.length > MAX_FRAME_BYTES) throw new RangeError("the frame is too large for the agent");
  const header = Buffer.allocUnsafe(LENGTH_BYTES + HEADER_BYTES);
  header.writeUInt32LE(HEADER_BYTES + payload.length, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(request, 5);
  return Buffer.concat([header, payload]);
}

/**
 * Cuts a byte stream into frames. It never holds more than one frame and one read, and copies a frame only when it
 * came in pieces.
 */
export class FrameDecoder {
  #pieces: Buffer[] = [];
  #held = 0;
  #needed = LENGTH_BYTES;

  *push(chunk: Buffer): Generator<Frame> {
    this.#pieces.push(chunk);
    this.#held += chunk.length;
    while (this.#held >= this.#needed) {
      const data = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      const length = data.readUInt32LE(0);
      if (length < HEADER_BYTES || length > MAX_FRAME_BYTES) {
        throw new MalformedFrameError(`a frame claims ${length} bytes`);
      }
      const end = LENGTH_BYTES + length;
      this.#needed = end;
      this.#pieces = [data];
      if (data.length < end) return;
      const rest = data.subarray(end);
      this.#pieces = rest.length > 0 ? [rest] : [];
      this.#held = rest.length;
      this.#needed = LENGTH_BYTES;
      yield { type: data.readUInt8(4), request: data.readUInt32LE(5), payload: data.subarray(9, end) };
    }
  }
}
