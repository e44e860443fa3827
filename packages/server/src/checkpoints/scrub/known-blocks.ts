import { crc32 } from "node:zlib";
import { ENTRY_BYTES, readEntry, referencesOf } from "../blocks/block-table.ts";

/**
 * The blocks of packs that were found whole, so that a block is read once however many images name it. Some 50 bytes for
 * each block; those of a pack go as soon as no image is left that names it.
 */
export class KnownBlocks {
  /** By pack: offsets, with the print of the entry that was held against the block. */
  readonly #packs = new Map<string, Map<number, number>>();

  has(pack: string, offset: number, print: number): boolean {
    return this.#packs.get(pack)?.get(offset) === print;
  }

  add(pack: string, offset: number, print: number): void {
    const blocks = this.#packs.get(pack);
    if (blocks === undefined) this.#packs.set(pack, new Map([[offset, print]]));
    else if (!blocks.has(offset)) blocks.set(offset, print);
  }

  forget(pack: string): void {
    this.#packs.delete(pack);
  }
}

/** What an entry says of its block, besides where it is: an image that says something else is not believed. */
export function printOf(table: Buffer, index: number): number {
  const at = index * ENTRY_BYTES;
  let print = crc32(table.subarray(at, at + 32));
  print = crc32(table.subarray(at + 40, at + 54), print);
  print = crc32(table.subarray(at + 64, at + 68), print);
  for (const reference of referencesOf(readEntry(table, index))) {
    print = crc32(table.subarray(reference * ENTRY_BYTES, reference * ENTRY_BYTES + 32), print);
  }
  // As a number that needs no object of its own.
  return print | 0;
}
