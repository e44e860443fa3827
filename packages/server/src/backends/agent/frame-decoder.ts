import { Buffer } from "node:buffer";
import { SandboxerError } from "@sandboxer/protocol";
import { MAX_FRAME_BYTES } from "./frame-types.ts";
import { MalformedFrameError } from "./payload.ts";

export interface Frame {
  readonly type: number;
  readonly request: number;
  readonly payload: Buffer;
  /** Whether the payload stays valid; if not, only until the next frame. */
  readonly lasts: boolean;
}

const LENGTH_BYTES = 4;
const HEADER_BYTES = 5;

/** The parts of the payload are copied, so the caller may change them. */
export function encodeFrame(type: number, request: number, ...payload: readonly Uint8Array[]): Buffer {
  const bytes = payload.reduce((total, part) => total + part.length, 0);
  if (HEADER_BYTES + bytes > MAX_FRAME_BYTES) {
    throw new SandboxerError("too_large", `A request of ${bytes} bytes is too large for the sandbox's agent.`);
  }
  const header = Buffer.allocUnsafe(LENGTH_BYTES + HEADER_BYTES);
  header.writeUInt32LE(HEADER_BYTES + bytes, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32LE(request, 5);
  return Buffer.concat([header, ...payload]);
}

/** Frames above this share memory: a buffer for each costs the server more than everything else about it. */
const OWN_MEMORY_BYTES = 128 * 1024;
/** Unused memory for large frames of any sandbox. */
const spare: Buffer[] = [];
const SPARES = 4;

/**
 * Cuts a byte stream into frames. It never holds more than one frame, in one buffer, however small the pieces; a frame
 * that arrived complete is not copied.
 */
export class FrameDecoder {
  readonly #chunksLast: boolean;
  readonly #head = Buffer.alloc(LENGTH_BYTES + HEADER_BYTES);
  /** The incomplete frame: as long as it claims to be, or its head. */
  #partial: Buffer = this.#head;
  #held = 0;

  /** `chunksLast`: whether pushed data stays valid afterwards. */
  constructor({ chunksLast }: { readonly chunksLast: boolean }) {
    this.#chunksLast = chunksLast;
  }

  *push(chunk: Buffer): Generator<Frame> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#held === 0 && rest.length >= LENGTH_BYTES) {
        const end = frameEnd(rest);
        if (rest.length >= end) {
          yield toFrame(rest.subarray(0, end), this.#chunksLast);
          rest = rest.subarray(end);
          continue;
        }
      }
      rest = this.#keep(rest);
      if (this.#partial === this.#head || this.#held < this.#partial.length) continue;
      const whole = this.#partial;
      this.#held = 0;
      this.#partial = this.#head;
      const shared = whole.length > OWN_MEMORY_BYTES;
      yield toFrame(whole, !shared);
      if (shared && spare.length < SPARES) spare.push(Buffer.from(whole.buffer));
    }
  }

  /** Takes the bytes of the incomplete frame, and returns the rest. */
  #keep(data: Buffer): Buffer {
    const rest = this.#copy(data);
    if (this.#partial !== this.#head || this.#held < LENGTH_BYTES) return rest;
    const end = frameEnd(this.#head);
    if (this.#held < this.#head.length) return rest;
    this.#partial = memoryFor(end);
    this.#head.copy(this.#partial);
    return this.#copy(rest);
  }

  #copy(data: Buffer): Buffer {
    const copied = data.copy(this.#partial, this.#held);
    this.#held += copied;
    return data.subarray(copied);
  }
}

function memoryFor(bytes: number): Buffer {
  if (bytes <= OWN_MEMORY_BYTES) return Buffer.allocUnsafe(bytes);
  const shared = spare.pop();
  return (shared !== undefined && shared.length >= bytes ? shared : Buffer.allocUnsafeSlow(bytes)).subarray(0, bytes);
}

function frameEnd(data: Buffer): number {
  const length = data.readUInt32LE(0);
  if (length < HEADER_BYTES || length > MAX_FRAME_BYTES)
    throw new MalformedFrameError(`a frame claims ${length} bytes`);
  return LENGTH_BYTES + length;
}

function toFrame(data: Buffer, lasts: boolean): Frame {
  return { type: data.readUInt8(4), request: data.readUInt32LE(5), payload: data.subarray(9), lasts };
}
