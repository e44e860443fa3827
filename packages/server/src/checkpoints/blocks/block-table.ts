/**
 * The table of an image of format 2: one entry of 80 bytes for each block of each member, in order, and behind them the
 * blocks that those were made from. COMPATIBILITY.md describes it byte by byte.
 */
export const BLOCK_BYTES = 256 * 1024;
export const ENTRY_BYTES = 80;

/** In place of a pack's number: the block is in the image itself. */
export const IN_IMAGE = 0xffff_ffff;
export const NO_REFERENCE = 0xffff_ffff;

/** The maximum depth of dependencies of a block. */
export const LARGEST_DEPTH = 4;

export const CODEC = { zero: 0, raw: 1, zstd: 2, difference: 3 } as const;
export type Codec = (typeof CODEC)[keyof typeof CODEC];

export interface BlockEntry {
  /** The digest of the block's own bytes. */
  readonly sha256: Uint8Array;
  /** Where its stored bytes are: a pack by its index in the image's list, or {@link IN_IMAGE}. */
  readonly pack: number;
  readonly offset: number;
  readonly storedBytes: number;
  readonly rawBytes: number;
  /** The sequence number of the block at its writer; its encryption depends on it. */
  readonly sequence: number;
  readonly codec: Codec;
  /** Zero for an independent block; otherwise one more than the greatest depth of its references. */
  readonly depth: number;
  /** The entries of the one or two blocks that a difference refers to, and the offset in them. */
  readonly reference: number;
  readonly secondReference: number;
  readonly shift: number;
  /** CRC-32 of its first page, which finds the same content at another position. */
  readonly hint: number;
  /** A quick check whether a local copy is still the block: see {@link checkOf}. */
  readonly check: bigint;
}

export function countEntries(table: Uint8Array): number {
  return table.byteLength / ENTRY_BYTES;
}

export function readEntry(table: Buffer, index: number): BlockEntry {
  const at = index * ENTRY_BYTES;
  return {
    sha256: table.subarray(at, at + 32),
    pack: table.readUInt32LE(at + 32),
    offset: table.readUInt32LE(at + 36),
    storedBytes: table.readUInt32LE(at + 40),
    rawBytes: table.readUInt32LE(at + 44),
    sequence: table.readUInt32LE(at + 48),
    codec: table.readUInt8(at + 52) as Codec,
    depth: table.readUInt8(at + 53),
    reference: table.readUInt32LE(at + 56),
    secondReference: table.readUInt32LE(at + 60),
    shift: table.readUInt32LE(at + 64),
    hint: table.readUInt32LE(at + 68),
    check: table.readBigUInt64LE(at + 72),
  };
}

export function encodeTable(entries: readonly BlockEntry[]): Buffer {
  const table = Buffer.alloc(entries.length * ENTRY_BYTES);
  for (const [index, entry] of entries.entries()) {
    const at = index * ENTRY_BYTES;
    table.set(entry.sha256, at);
    table.writeUInt32LE(entry.pack, at + 32);
    table.writeUInt32LE(entry.offset, at + 36);
    table.writeUInt32LE(entry.storedBytes, at + 40);
    table.writeUInt32LE(entry.rawBytes, at + 44);
    table.writeUInt32LE(entry.sequence, at + 48);
    table.writeUInt8(entry.codec, at + 52);
    table.writeUInt8(entry.depth, at + 53);
    table.writeUInt32LE(entry.reference, at + 56);
    table.writeUInt32LE(entry.secondReference, at + 60);
    table.writeUInt32LE(entry.shift, at + 64);
    table.writeUInt32LE(entry.hint, at + 68);
    table.writeBigUInt64LE(entry.check, at + 72);
  }
  return table;
}

/** A block of zeros has nothing stored. */
export function zeroEntry(rawBytes: number): BlockEntry {
  return {
    sha256: new Uint8Array(32),
    pack: IN_IMAGE,
    offset: 0,
    storedBytes: 0,
    rawBytes,
    sequence: 0,
    codec: CODEC.zero,
    depth: 0,
    reference: NO_REFERENCE,
    secondReference: NO_REFERENCE,
    shift: 0,
    hint: 0,
    check: 0n,
  };
}

/**
 * Calls `visit` with the pack of a block and of each block that it depends on. Much cheaper than reading the entries.
 */
export function visitPacks(table: Buffer, index: number, visit: (pack: number) => void): void {
  const at = index * ENTRY_BYTES;
  visit(table.readUInt32LE(at + 32));
  const reference = table.readUInt32LE(at + 56);
  const secondReference = table.readUInt32LE(at + 60);
  if (reference !== NO_REFERENCE) visitPacks(table, reference, visit);
  if (secondReference !== NO_REFERENCE && secondReference !== reference) visitPacks(table, secondReference, visit);
}

/** The entries that a block's content depends on. */
export function referencesOf({ reference, secondReference }: BlockEntry): readonly number[] {
  return [reference, secondReference].filter((index) => index !== NO_REFERENCE);
}

export interface TableBounds {
  readonly packCount: number;
  readonly inImageBytes: number;
}

function depthOf(table: Buffer, index: number): number {
  return table.readUInt8(index * ENTRY_BYTES + 53);
}

/** Finds an invalid entry; if there is none, every entry can be resolved. */
export function faultOfEntry(
  table: Buffer,
  index: number,
  { packCount, inImageBytes }: TableBounds,
): string | undefined {
  const entry = readEntry(table, index);
  if (entry.rawBytes === 0 || entry.rawBytes > BLOCK_BYTES) return "an impossible size";
  if (entry.codec > CODEC.difference) return `unknown codec ${entry.codec}`;
  if (entry.pack === IN_IMAGE) {
    if (entry.offset + entry.storedBytes > inImageBytes) return "it is not inside the image";
  } else if (entry.pack >= packCount) return "it is in a pack that the image does not name";
  if (entry.storedBytes > BLOCK_BYTES + 1024) return "an impossible stored size";
  const references = referencesOf(entry);
  if ((entry.codec === CODEC.difference) !== references.length > 0) return "references that its codec does not go with";
  if (entry.depth > LARGEST_DEPTH) return "it depends on too many others";
  if (entry.shift >= BLOCK_BYTES || (entry.shift > 0 && entry.codec !== CODEC.difference)) return "an impossible shift";
  for (const reference of references) {
    if (reference >= countEntries(table)) return "it refers to a missing block";
    // So that references cannot form a cycle.
    if (depthOf(table, reference) >= entry.depth) return "it refers to a block that depends on as many";
  }
  return undefined;
}
