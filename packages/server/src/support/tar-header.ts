const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const LINK_BYTES = 100;
/** The largest numbers that fit in so many octal digits, followed by a NUL. */
const MAX_OCTAL_12 = 0o77777777777;
const MAX_OCTAL_8 = 0o7777777;
const TYPES = { file: "0", hardlink: "1", symlink: "2", folder: "5" } as const;

export interface TarEntry {
  readonly kind: keyof typeof TYPES;
  /** Relative to the packed folder; a folder's name ends with a slash. Bytes. */
  readonly name: Buffer;
  /** For a hard link: the name of the file in the archive. */
  readonly linkTarget?: Buffer;
  /** Records of a pax header with further attributes. */
  readonly pax?: Buffer | undefined;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** The blocks before the content of an entry, as GNU tar writes them: names of any bytes and any length. */
export function tarHeader(entry: TarEntry): Buffer {
  const { name, linkTarget = Buffer.alloc(0), pax } = entry;
  return Buffer.concat([
    ...(pax === undefined ? [] : paxHeader(pax)),
    ...(linkTarget.length > LINK_BYTES ? longField("K", linkTarget) : []),
    ...(name.length > NAME_BYTES ? longField("L", name) : []),
    block(entry, TYPES[entry.kind], name, linkTarget),
  ]);
}

/** The zero padding after content of so many bytes. */
export function tarPadding(sizeBytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

export function tarEnd(): Buffer {
  return Buffer.alloc(2 * BLOCK_BYTES);
}

function longField(type: "K" | "L", value: Buffer): Buffer[] {
  return before(type, "././@LongLink", Buffer.concat([value, Buffer.of(0)]));
}

function paxHeader(records: Buffer): Buffer[] {
  return before("x", "././@PaxHeader", records);
}

/** Attributes of the entry that follows. */
function before(type: "K" | "L" | "x", name: string, content: Buffer): Buffer[] {
  const header = { mode: 0, uid: 0, gid: 0, sizeBytes: content.length, modifiedMs: 0 };
  return [block(header, type, Buffer.from(name), Buffer.alloc(0)), content, tarPadding(content.length)];
}

function block(
  { mode, uid, gid, sizeBytes, modifiedMs }: Omit<TarEntry, "kind" | "name" | "linkTarget" | "pax">,
  type: string,
  name: Buffer,
  linkTarget: Buffer,
): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  name.copy(header, 0, 0, NAME_BYTES);
  putNumber(header, 100, 8, mode & 0o7777);
  putNumber(header, 108, 8, uid);
  putNumber(header, 116, 8, gid);
  putNumber(header, 124, 12, sizeBytes);
  putNumber(header, 136, 12, Math.max(0, Math.floor(modifiedMs / 1000)));
  header.write(type, 156, "latin1");
  linkTarget.copy(header, 157, 0, LINK_BYTES);
  header.write("ustar  \0", 257, "latin1");
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** In octal, or, if that is too short, in binary with the first bit set. */
function putNumber(header: Buffer, offset: number, length: 8 | 12, value: number): void {
  if (value <= (length === 8 ? MAX_OCTAL_8 : MAX_OCTAL_12)) {
    header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, offset, "latin1");
    return;
  }
  header.writeBigUInt64BE(BigInt(value), offset + length - 8);
  header[offset] = 0x80;
}
