import { closeSync, openSync, readSync } from "node:fs";
import { checkOf } from "./block-check.ts";
import { BLOCK_BYTES, type BlockEntry } from "./block-table.ts";

/** A member of an image as a plain file on this machine: its blocks, by their entries. */
export interface PlainCopy {
  readonly firstBlock: number;
  readonly blockCount: number;
  readonly path: string;
}

/** How many blocks are in memory. A search reads up to nine while it uses one. */
const HELD_BLOCKS = 16;

/**
 * Blocks of an image that need not be decoded. Each is compared with its check; a changed or unreadable one counts as
 * missing.
 */
export class PlainCopies {
  readonly #files: readonly PlainCopy[];
  readonly #descriptors = new Map<string, number>();
  readonly #memory: Buffer[] = [];
  /** By entry, least recently used first. */
  readonly #held = new Map<number, Buffer>();

  constructor(files: readonly PlainCopy[]) {
    this.#files = files;
  }

  /** Whether a copy is on this machine; it may be damaged. */
  has(index: number): boolean {
    return this.#fileOf(index) !== undefined;
  }

  /** Valid until {@link HELD_BLOCKS} others have been requested. */
  read(index: number, { rawBytes, check }: BlockEntry): Buffer | undefined {
    const held = this.#held.get(index);
    if (held !== undefined) {
      // Mark the copy as most recently used.
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
