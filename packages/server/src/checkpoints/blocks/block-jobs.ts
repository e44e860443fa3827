import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { type BaseMember, BlockBase } from "./block-base.ts";
import { BlockCipher } from "./block-cipher.ts";
import { BlockDamagedError, BlockReader } from "./block-reader.ts";
import { BLOCK_BYTES, CODEC, countEntries, IN_IMAGE } from "./block-table.ts";
import { type PlainCopy, PlainCopies } from "./plain-copies.ts";
import { BlockEncoder, type EncodedBlock } from "./encode-blocks.ts";

/** An image whose blocks are read, in a form that can be sent between threads. */
export interface ReadableImage {
  readonly table: Uint8Array;
  readonly inImage: Uint8Array;
  readonly writerIds: readonly string[];
  readonly writerId: string;
  readonly dataKey: Uint8Array | undefined;
  readonly packFiles: readonly (readonly [pack: number, path: string])[];
}

/** The image that another one is written against. */
export interface WritingBase {
  readonly image: ReadableImage;
  /** How many of its entries are members' blocks. */
  readonly memberBlocks: number;
  readonly usablePacks: readonly boolean[];
  /** Its members as plain files on this machine. */
  readonly copies: readonly PlainCopy[];
}

export type BlockSession =
  | { readonly kind: "read"; readonly image: ReadableImage }
  | {
      readonly kind: "write";
      /** Undefined: every block is new. */
      readonly base: WritingBase | undefined;
      readonly writerId: string;
      readonly dataKey: Uint8Array | undefined;
    };

export interface EncodeJob {
  readonly kind: "encode";
  readonly path: string;
  readonly position: number;
  readonly sizeBytes: number;
  readonly baseMember: BaseMember | undefined;
  /** The position of the first block. */
  readonly sequence: number;
}

/** Checks consecutive blocks, and writes them to a file if one is given. */
export interface DecodeJob {
  readonly kind: "decode";
  readonly firstBlock: number;
  readonly blockCount: number;
  readonly packFiles: readonly (readonly [pack: number, path: string])[];
  readonly into: { readonly path: string; readonly position: number } | undefined;
}

/** Compares blocks of a file with their digests. */
export interface CompareJob {
  readonly kind: "compare";
  readonly firstBlock: number;
  readonly blockCount: number;
  readonly file: { readonly path: string; readonly position: number };
}

export type BlockJob = EncodeJob | DecodeJob | CompareJob;

/** A damaged block is a result, not a failure: the caller knows its image. */
export type BlockResult =
  | { readonly kind: "encoded"; readonly blocks: readonly EncodedBlock[] }
  | { readonly kind: "decoded" }
  | { readonly kind: "damaged"; readonly index: number; readonly pack: number; readonly problem: string };

/** The work of one session, in any thread. */
export class BlockSessionWork {
  readonly #session: BlockSession;
  readonly #reader: BlockReader | undefined;
  readonly #base: BlockBase | undefined;
  readonly #cipher: BlockCipher | undefined;
  readonly #buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  readonly #encoders = new Map<string, BlockEncoder>();
  readonly #descriptors = new Map<string, number>();

  constructor(session: BlockSession) {
    this.#session = session;
    const image = session.kind === "read" ? session.image : session.base?.image;
    const copies = session.kind === "write" ? (session.base?.copies ?? []) : [];
    this.#reader = image && readerOf(image, session.kind === "read" ? "digest" : "check", copies);
    if (session.kind === "read") return;
    if (session.dataKey !== undefined) this.#cipher = new BlockCipher(session.dataKey);
    if (this.#reader === undefined || session.base === undefined) return;
    this.#base = new BlockBase(this.#reader, { ...session.base, entryCount: countEntries(session.base.image.table) });
  }

  run(job: BlockJob): BlockResult {
    try {
      if (job.kind === "encode") return this.#encode(job);
      return job.kind === "decode" ? this.#decode(job) : this.#compare(job);
    } catch (error) {
      if (!(error instanceof BlockDamagedError)) throw error;
      return { kind: "damaged", index: error.index, pack: error.pack, problem: error.message };
    }
  }

  close(): void {
    this.#reader?.close();
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor);
    this.#descriptors.clear();
  }

  #encode({ path, position, sizeBytes, baseMember, sequence }: EncodeJob): BlockResult {
    const encoder = this.#encoderOf(path);
    const descriptor = this.#descriptorOf(path, "r");
    const blocks: EncodedBlock[] = [];
    for (let at = 0; at < sizeBytes; at += BLOCK_BYTES) {
      const block = this.#buffer.subarray(0, Math.min(BLOCK_BYTES, sizeBytes - at));
      readExactly(descriptor, block, position + at);
      blocks.push(this.#seal(encoder.encode(block, position + at, baseMember), sequence + blocks.length));
    }
    return { kind: "encoded", blocks };
  }

  #seal(block: EncodedBlock, sequence: number): EncodedBlock {
    if (block.kind !== "stored" || this.#cipher === undefined || this.#session.kind !== "write") return block;
    return { ...block, bytes: this.#cipher.seal(this.#session.writerId, sequence, block.bytes) };
  }

  #decode({ firstBlock, blockCount, packFiles, into }: DecodeJob): BlockResult {
    const reader = this.#reader;
    if (reader === undefined) throw new TypeError("A session that writes has no image of its own to read.");
    reader.addPackFiles(packFiles);
    let position = into?.position ?? 0;
    for (let index = firstBlock; index < firstBlock + blockCount; index++) {
      const { codec, rawBytes } = reader.entry(index);
      // Zeros are already there: the file was created with its final size.
      if (codec !== CODEC.zero) {
        const bytes = reader.read(index);
        if (into !== undefined) writeExactly(this.#descriptorOf(into.path, "r+"), bytes, position);
      }
      position += rawBytes;
    }
    return { kind: "decoded" };
  }

  #compare({ firstBlock, blockCount, file }: CompareJob): BlockResult {
    const reader = this.#reader;
    if (reader === undefined) throw new TypeError("A session that writes has no image of its own to compare with.");
    const descriptor = this.#descriptorOf(file.path, "r");
    let { position } = file;
    for (let index = firstBlock; index < firstBlock + blockCount; index++) {
      const { rawBytes } = reader.entry(index);
      const block = this.#buffer.subarray(0, rawBytes);
      readExactly(descriptor, block, position);
      if (!reader.isBlock(index, block)) throw new BlockDamagedError(index, IN_IMAGE, "its digest differs");
      position += rawBytes;
    }
    return { kind: "decoded" };
  }

  #encoderOf(path: string): BlockEncoder {
    let encoder = this.#encoders.get(path);
    if (encoder === undefined) {
      encoder = new BlockEncoder(this.#base);
      this.#encoders.set(path, encoder);
    }
    return encoder;
  }

  #descriptorOf(path: string, flags: "r" | "r+"): number {
    let descriptor = this.#descriptors.get(path);
    if (descriptor === undefined) {
      descriptor = openSync(path, flags);
      this.#descriptors.set(path, descriptor);
    }
    return descriptor;
  }
}

function readerOf(image: ReadableImage, heldAgainst: "digest" | "check", files: readonly PlainCopy[]): BlockReader {
  const { table, inImage, writerIds, writerId, dataKey, packFiles } = image;
  const cipher = dataKey === undefined ? undefined : new BlockCipher(dataKey);
  const shared = Buffer.from(table.buffer, table.byteOffset, table.byteLength);
  const copies = files.length === 0 ? undefined : new PlainCopies(files);
  const reader = new BlockReader({ table: shared, inImage, writerIds, writerId, cipher, heldAgainst, copies });
  reader.addPackFiles(packFiles);
  return reader;
}

function readExactly(descriptor: number, into: Buffer, position: number): void {
  for (let done = 0; done < into.byteLength;) {
    const got = readSync(descriptor, into, done, into.byteLength - done, position + done);
    if (got === 0) throw new Error(`A file became shorter while it was read, at byte ${position + done}.`);
    done += got;
  }
}

function writeExactly(descriptor: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.byteLength;) {
    done += writeSync(descriptor, bytes, done, bytes.byteLength - done, position + done);
  }
}
