import { closeSync, openSync, readSync } from "node:fs";
import { checkOf } from "./block-check.ts";
import { BLOCK_BYTES, type BlockEntry } from "./block-table.ts";

/** A member of an image as it is, in a file of this machine: its blocks, by their entries. */
export interface PlainCopy {
  readonly firstBlock: number;
  readonly blockCount: number;
  readonly path: string;
}

/** How many blocks are in memory. A search reads up to nine while it holds on to one. */
const HELD_BLOCKS = 16;

/** Blocks of an image that need not be decoded. Each is held against its check; one that differs or cannot be read is not there. */
export class PlainCopies {
  readonly #files: readonly PlainCopy[];
  readonly #descriptors = new Map<string, number>();
  readonly #memory: Buffer[] = [];
  /** By their entries, the one that was asked for longest ago first. */
  readonly #held = new Map<number, Buffer>();

  constructor(files: readonly PlainCopy[]) {
    this.#files = files;
  }

  /** Whether it lies here; it need not be whole. */
  has(index: number): boolean {
    return this.#fileOf(index) !== undefined;
  }

  /** Stays as it is until {@link HELD_BLOCKS} others have been asked for. */
  read(index: number, { rawBytes, check }: BlockEntry): Buffer | undefined {
    const held = this.#held.get(index);
    if (held !== undefined) {
      // Who gets it may read as many others as who has just read it from the disk.
      this.#held.delete(index);
      this.#held.set(index, held);
      return held;
    }
    const file = this.#fileOf(index);
    if (file === undefined) return undefined;
    const memory = this.#freeMemory();
    const block = memory.subarray(0, rawBytes);
    const isWhole = this.#fill(block, file, (index - file.firstBlock) * BLOCK_BYTES) && checkOf(block) === check;
    if (!isWhole) {
      this.#memory.push(memory);
      return undefined;
    }
    this.#held.set(index, block);
    return block;
  }

  close(): void {
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor);
    this.#descriptors.clear();
    this.#held.clear();
  }

  #fileOf(index: number): PlainCopy | undefined {
    return this.#files.find(({ firstBlock, blockCount }) => index >= firstBlock && index < firstBlock + blockCount);
  }

  #freeMemory(): Buffer {
    const [oldest] = this.#held;
    if (this.#held.size < HELD_BLOCKS || oldest === undefined) {
      return this.#memory.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    }
    const [index, { buffer }] = oldest;
    this.#held.delete(index);
    return Buffer.from(buffer);
  }

  #fill(block: Buffer, { path }: PlainCopy, position: number): boolean {
    try {
      let descriptor = this.#descriptors.get(path);
      if (descriptor === undefined) {
        descriptor = openSync(path, "r");
        this.#descriptors.set(path, descriptor);
      }
      return readSync(descriptor, block, 0, block.byteLength, position) === block.byteLength;
    } catch {
      return false;
    }
  }
}
