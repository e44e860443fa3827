import { hash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { checkOf } from "./block-check.ts";
import type { BlockCipher } from "./block-cipher.ts";
import { BLOCK_BYTES, type BlockEntry, CODEC, IN_IMAGE, NO_REFERENCE, readEntry, referencesOf } from "./block-table.ts";
import { decompress } from "./compression.ts";
import { applyDifference, LARGEST_DIFFERENCE_BYTES } from "./difference.ts";
import type { PlainCopies } from "./plain-copies.ts";

/** How many decoded blocks are cached: neighbours often depend on the same ones. */
const KEPT_BLOCKS = 12;

const ZEROS = Buffer.alloc(BLOCK_BYTES);

export interface BlockSource {
  readonly table: Buffer;
  /** The part of the image itself that contains blocks. */
  readonly inImage: Uint8Array;
  /** For each pack of the image, the prefix of its id: the id of its writer. */
  readonly writerIds: readonly string[];
  /** The image's own writer. */
  readonly writerId: string;
  readonly cipher: BlockCipher | undefined;
  /**
   * The checks of blocks: against their digests for data that is handed out; only against disk errors for the base of a
   * new image, because a difference to a corrupted block would be useless.
   */
  readonly heldAgainst: "digest" | "check";
  /** The image's members as plain files on this machine, for a writer against it. */
  readonly copies?: PlainCopies | undefined;
}

/** A block whose stored bytes do not match its entry. */
export class BlockDamagedError extends Error {
  readonly index: number;
  readonly pack: number;

  constructor(index: number, pack: number, problem: string) {
    super(problem);
    this.name = "BlockDamagedError";
    this.index = index;
    this.pack = pack;
  }
}

/** Blocks of one image, read from local packs, each compared with its digest. Synchronous: for a worker. */
export class BlockReader {
  readonly #source: BlockSource;
  readonly #packFiles = new Map<number, string>();
  readonly #descriptors = new Map<number, number>();
  readonly #kept = new Map<number, Buffer>();
  readonly #stored = Buffer.allocUnsafeSlow(BLOCK_BYTES + 1024);

  constructor(source: BlockSource) {
    this.#source = source;
  }

  /** Paths of packs, by their index in the image's list. */
  addPackFiles(files: readonly (readonly [pack: number, path: string])[]): void {
    for (const [pack, path] of files) this.#packFiles.set(pack, path);
  }

  entry(index: number): BlockEntry {
    return readEntry(this.#source.table, index);
  }

  /** Whether everything that a block depends on is on this machine. */
  isAtHand(index: number): boolean {
    if (this.#source.copies?.has(index) === true) return true;
    const entry = this.entry(index);
    if (entry.codec === CODEC.zero) return true;
    if (entry.pack !== IN_IMAGE && !this.#packFiles.has(entry.pack)) return false;
    return referencesOf(entry).every((each) => this.isAtHand(each));
  }

  /**
   * The plain copy of the block on this machine; undefined if there is none or it changed, and for zeros, which need no
   * reading. Stays valid while a few others are read.
   */
  readCopy(index: number): Buffer | undefined {
    const entry = this.entry(index);
    return entry.codec === CODEC.zero ? undefined : this.#source.copies?.read(index, entry);
  }

  /** The block's bytes, which must not be changed; throws {@link BlockDamagedError}. */
  read(index: number): Buffer {
    return this.readCopy(index) ?? this.readDecoded(index);
  }

  /** As {@link read}, from its stored bytes. */
  readDecoded(index: number): Buffer {
    const bytes = this.#content(index);
    const entry = this.entry(index);
    const isGood = this.#source.heldAgainst === "digest" ? this.isBlock(index, bytes) : isUnchanged(entry, bytes);
    if (isGood) return bytes;
    // Its references were not checked: if one is damaged, that one is reported.
    for (const reference of referencesOf(entry)) this.readDecoded(reference);
    throw new BlockDamagedError(index, entry.pack, "its digest differs");
  }

  /** Whether these are the block's bytes. */
  isBlock(index: number, bytes: Buffer): boolean {
    const { codec, sha256 } = this.entry(index);
    if (codec === CODEC.zero) return bytes.equals(ZEROS.subarray(0, bytes.byteLength));
    return hash("sha256", bytes, "buffer").equals(sha256);
  }

  /**
   * The bytes from `shift` on in one block and the next, as many as a block of `sizeBytes` has; zeros beyond the end.
   */
  readAcross(first: number, second: number, shift: number, sizeBytes: number): Buffer {
    return across(this.read(first), second === NO_REFERENCE ? undefined : this.read(second), shift, sizeBytes);
  }

  /** The stored bytes of a block, decrypted. */
  readStored(index: number): Buffer {
    return Buffer.from(this.#unsealed(index, this.entry(index)));
  }

  close(): void {
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor);
    this.#descriptors.clear();
    this.#source.copies?.close();
    this.#kept.clear();
  }

  /** The decoded bytes, whatever the digest says. */
  #content(index: number): Buffer {
    const kept = this.#kept.get(index);
    if (kept !== undefined) return kept;
    const entry = this.entry(index);
    const bytes = this.#decode(index, entry);
    if (bytes.byteLength !== entry.rawBytes) throw new BlockDamagedError(index, entry.pack, "its size differs");
    this.#keep(index, bytes);
    return bytes;
  }

  #decode(index: number, entry: BlockEntry): Buffer {
    if (entry.codec === CODEC.zero) return Buffer.alloc(entry.rawBytes);
    const stored = this.#unsealed(index, entry);
    // The buffer is reused for the next block.
    if (entry.codec === CODEC.raw) return Buffer.from(stored);
    const plain = decompress(stored, entry.codec === CODEC.difference ? LARGEST_DIFFERENCE_BYTES : BLOCK_BYTES);
    if (plain === undefined) throw new BlockDamagedError(index, entry.pack, "it cannot be decompressed");
    if (entry.codec === CODEC.zstd) return plain;
    const second = entry.secondReference === NO_REFERENCE ? undefined : this.#content(entry.secondReference);
    const other = across(this.#content(entry.reference), second, entry.shift, entry.rawBytes);
    const block = applyDifference(plain, other);
    if (block === undefined)
      throw new BlockDamagedError(index, entry.pack, "it is not a valid difference to a block of its size");
    return block;
  }

  #unsealed(index: number, entry: BlockEntry): Buffer {
    const { cipher, writerIds, writerId } = this.#source;
    const stored = this.#readStored(index, entry);
    if (cipher === undefined) return stored;
    const writer = entry.pack === IN_IMAGE ? writerId : (writerIds[entry.pack] ?? "");
    const opened = cipher.open(writer, entry.sequence, stored);
    if (opened === undefined) throw new BlockDamagedError(index, entry.pack, "it does not decrypt");
    return opened;
  }

  #readStored(index: number, { pack, offset, storedBytes }: BlockEntry): Buffer {
    if (pack === IN_IMAGE) return Buffer.from(this.#source.inImage.subarray(offset, offset + storedBytes));
    const into = this.#stored.subarray(0, storedBytes);
    let done = 0;
    while (done < storedBytes) {
      const got = readSync(this.#descriptorOf(index, pack), into, done, storedBytes - done, offset + done);
      if (got === 0) throw new BlockDamagedError(index, pack, `its pack ends at byte ${offset + done}`);
      done += got;
    }
    return into;
  }

  #descriptorOf(index: number, pack: number): number {
    const open = this.#descriptors.get(pack);
    if (open !== undefined) return open;
    const path = this.#packFiles.get(pack);
    if (path === undefined) throw new BlockDamagedError(index, pack, "its pack is not open");
    try {
      const descriptor = openSync(path, "r");
      this.#descriptors.set(pack, descriptor);
      return descriptor;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      throw new BlockDamagedError(index, pack, "its pack is missing");
    }
  }

  #keep(index: number, bytes: Buffer): void {
    this.#kept.set(index, bytes);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT_BLOCKS && oldest !== undefined) this.#kept.delete(oldest);
  }
}

function isUnchanged({ codec, check }: BlockEntry, bytes: Buffer): boolean {
  return codec === CODEC.zero || checkOf(bytes) === check;
}

function across(first: Buffer, second: Buffer | undefined, shift: number, sizeBytes: number): Buffer {
  if (shift === 0 && first.byteLength >= sizeBytes) return first.subarray(0, sizeBytes);
  const bytes = Buffer.alloc(sizeBytes);
  if (shift < first.byteLength) first.copy(bytes, 0, shift, shift + sizeBytes);
  second?.copy(bytes, BLOCK_BYTES - shift, 0, sizeBytes);
  return bytes;
}
