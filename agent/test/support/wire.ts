/** Encoding and decoding of PROTOCOL.md's primitives. */
export const Type = {
  ok: 0x80,
  error: 0x81,
  output: 0xc0,
  exit: 0xc1,
  connectionData: 0xc2,
  connectionClosed: 0xc3,
  ready: 0xc4,
  resynced: 0xc5,
  connectionAccepted: 0xc6,
  change: 0xc7,
  hello: 0x01,
  ping: 0x02,
  spawn: 0x03,
  stdin: 0x04,
  stdinClose: 0x05,
  signal: 0x06,
  resize: 0x07,
  window: 0x08,
  processes: 0x09,
  forget: 0x0a,
  quiesce: 0x0b,
  resume: 0x0c,
  restored: 0x0d,
  freeze: 0x0e,
  thaw: 0x0f,
  fileStat: 0x10,
  fileList: 0x11,
  fileRead: 0x12,
  fileWrite: 0x13,
  fileMkdir: 0x14,
  fileRemove: 0x15,
  fileRename: 0x16,
  fileSymlink: 0x17,
  fileSet: 0x18,
  fileLink: 0x19,
  fileAttributes: 0x1a,
  fileSetAttribute: 0x1b,
  fileRemoveAttribute: 0x1c,
  watch: 0x1d,
  unwatch: 0x1e,
  connect: 0x20,
  connectionWrite: 0x21,
  connectionClose: 0x22,
  connectionWindow: 0x23,
  listen: 0x24,
  processTable: 0x30,
  resync: 0x31,
  resyncToken: 0x32,
  user: 0x33,
} as const;

export const u8 = (value: number): Buffer => Buffer.from([value]);
export function u16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeUInt16LE(value);
  return buffer;
}
export function u32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}
export function u64(value: number | bigint): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return buffer;
}
export function str(text: string | Buffer): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u32(bytes.length), bytes]);
}
export function list(texts: readonly string[]): Buffer {
  return Buffer.concat([u32(texts.length), ...texts.map((text) => str(text))]);
}
export function frame(type: number, request: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([u32(payload.length + 5), u8(type), u32(request), payload]);
}

export class Reader {
  at = 0;
  readonly bytes: Buffer;
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
  u8(): number {
    return this.bytes.readUInt8(this.at++);
  }
  u32(): number {
    return this.bytes.readUInt32LE((this.at += 4) - 4);
  }
  i32(): number {
    return this.bytes.readInt32LE((this.at += 4) - 4);
  }
  u64(): number {
    return Number(this.bytes.readBigUInt64LE((this.at += 8) - 8));
  }
  str(): string {
    const size = this.u32();
    return this.bytes.toString("utf8", this.at, (this.at += size));
  }
  rest(): Buffer {
    return this.bytes.subarray(this.at);
  }
}
