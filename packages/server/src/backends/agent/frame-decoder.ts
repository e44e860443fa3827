import { Buffer } from "node:buffer";
import { SandboxerError } from "@sandboxer/protocol";
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
  if (HEADER_BYTES + payload.length > MAX_FRAME_BYTES) {
    throw new SandboxerError("too_large", `A request of ${payload.length} bytes is too large for the sandbox's agent.`);
  }
  const header = Buffer.allocUnsafe(LENGTH_BYTES + HEADER_BYTES);
  header.writeUInt32LE(HEADER_BYTES + payload.length, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(request, 5);
  return Buffer.concat([header, payload]);
}

/**
 * Cuts a byte stream into frames. It never holds more than one frame, in one buffer, however small the pieces are that
 * it comes in; a frame that came whole is not copied.
 */
export class FrameDecoder {
  /** The frame that is not complete yet: as long as it claims to be, or as its length field. */
  #partial = Buffer.alloc(0);
  #held = 0;

  *push(chunk: Buffer): Generator<Frame> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#held === 0 && rest.length >= LENGTH_BYTES) {
        const end = frameEnd(rest);
        if (rest.length >= end) {
          yield toFrame(rest.subarray(0, end));
          rest = rest.subarray(end);
          continue;
        }
      }
      rest = this.#keep(rest);
      if (this.#held < this.#partial.length) return;
      const whole = this.#partial;
      this.#held = 0;
      yield toFrame(whole);
    }
  }

  /** Takes what belongs to the unfinished frame, and gives what is left. */
  #keep(data: Buffer): Buffer {
    if (this.#held === 0) this.#partial = Buffer.allocUnsafe(LENGTH_BYTES);
    let rest = this.#copy(data);
    if (this.#held === LENGTH_BYTES && this.#partial.length === LENGTH_BYTES) {
      const whole = Buffer.allocUnsafe(frameEnd(this.#partial));
      this.#partial.copy(whole);
      this.#partial = whole;
      rest = this.#copy(rest);
    }
    return rest;
  }

  #copy(data: Buffer): Buffer {
    const copied = data.copy(this.#partial, this.#held);
    this.#held += copied;
    return data.subarray(copied);
  }
}

function frameEnd(data: Buffer): number {
  const length = data.readUInt32LE(0);
  if (length < HEADER_BYTES || length > MAX_FRAME_BYTES)
    throw new MalformedFrameError(`a frame claims ${length} bytes`);
  return LENGTH_BYTES + length;
}

function toFrame(data: Buffer): Frame {
  return { type: data.readUInt8(4), request: data.readUInt32LE(5), payload: data.subarray(9) };
}
