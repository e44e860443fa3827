import { Buffer } from "node:buffer";

/** In latin1 each character is one byte, so that names of any bytes survive. */
export type StringEncoding = "utf8" | "latin1";

/** Builds the payload of a frame; field order is that of agent/PROTOCOL.md. */
export class PayloadWriter {
  readonly #strings: StringEncoding;
  #parts: Buffer[] = [];

  constructor(strings: StringEncoding = "utf8") {
    this.#strings = strings;
  }

  u8(value: number): this {
    this.#parts.push(Buffer.of(value));
    return this;
  }

  u16(value: number): this {
    const field = Buffer.allocUnsafe(2);
    field.writeUInt16LE(value);
    this.#parts.push(field);
    return this;
  }

  u32(value: number): this {
    const field = Buffer.allocUnsafe(4);
    field.writeUInt32LE(value);
    this.#parts.push(field);
    return this;
  }

  u64(value: number): this {
    const field = Buffer.allocUnsafe(8);
    field.writeBigUInt64LE(BigInt(value));
    this.#parts.push(field);
    return this;
  }

  i64(value: bigint): this {
    const field = Buffer.allocUnsafe(8);
    field.writeBigInt64LE(value);
    this.#parts.push(field);
    return this;
  }

  string(value: string): this {
    const bytes = Buffer.from(value, this.#strings);
    return this.u32(bytes.length).bytes(bytes);
  }

  bytes(value: Uint8Array): this {
    this.#parts.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    return this;
  }

  /** The parts so far. */
  get parts(): readonly Buffer[] {
    return this.#parts;
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** Thrown for a frame that violates the protocol. The sandbox can write to the agent's memory. */
export class MalformedFrameError extends Error {
  override name = "MalformedFrameError";
}

/** Reads a payload field by field; a missing field is a {@link MalformedFrameError}, never a crash. */
export class PayloadReader {
  readonly #data: Buffer;
  readonly #lasts: boolean;
  #position = 0;

  /** `lasts`: whether the bytes stay valid afterwards. */
  constructor(data: Buffer, lasts = true) {
    this.#data = data;
    this.#lasts = lasts;
  }

  u8(): number {
    return this.#take(1).readUInt8();
  }

  u16(): number {
    return this.#take(2).readUInt16LE();
  }

  u32(): number {
    return this.#take(4).readUInt32LE();
  }

  i32(): number {
    return this.#take(4).readInt32LE();
  }

  /** Refuses numbers that cannot be represented exactly: real offsets and sizes are smaller. */
  u64(): number {
    const value = this.#take(8).readBigUInt64LE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new MalformedFrameError("a 64-bit field is out of range");
    return Number(value);
  }

  u64Exact(): bigint {
    return this.#take(8).readBigUInt64LE();
  }

  i64(): bigint {
    return this.#take(8).readBigInt64LE();
  }

  string(encoding: StringEncoding = "utf8"): string {
    return this.bytes().toString(encoding);
  }

  /** Length-prefixed bytes, valid only now. */
  bytes(): Buffer {
    return this.#take(this.u32());
  }

  /** How many bytes follow. */
  get left(): number {
    return this.#data.length - this.#position;
  }

  /** The rest, valid only now. */
  passing(): Buffer {
    return this.#take(this.left);
  }

  rest(): Buffer {
    const rest = this.passing();
    return this.#lasts ? rest : Buffer.from(rest);
  }

  /** Nothing may follow. */
  end(): void {
    if (this.#position !== this.#data.length) throw new MalformedFrameError("a frame continues after its last field");
  }

  /** A list with a count; the count is trusted only as far as there are bytes for it. */
  list<Item>(item: () => Item): Item[] {
    const items: Item[] = [];
    for (let left = this.u32(); left > 0; left--) items.push(item());
    return items;
  }

  #take(length: number): Buffer {
    const end = this.#position + length;
    if (end > this.#data.length) throw new MalformedFrameError("a frame ends inside a field");
    const slice = this.#data.subarray(this.#position, end);
    this.#position = end;
    return slice;
  }
}
