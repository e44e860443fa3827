import type { EncodedBlock } from "../blocks/encode-blocks.ts";
import { type BlockEntry, CODEC, IN_IMAGE, NO_REFERENCE, readEntry, zeroEntry } from "../blocks/block-table.ts";
import type { BlockPlace } from "./block-sink.ts";

/** Where the stored bytes of a block of this image will be. */
type Store = (bytes: Uint8Array) => Promise<BlockPlace>;

interface NewEntry extends Omit<BlockEntry, "pack" | "offset"> {
  /** Filled in at the end: a location may still change. */
  readonly place: BlockPlace;
}

/**
 * The entries of an image that is being written: first those of its members' blocks, in order, then those that these
 * are differences to. Entries of the base are copied, with their packs.
 */
export class EntryList {
  readonly #memberBlocks: number;
  readonly #base: Buffer | undefined;
  readonly #entries: (BlockEntry | NewEntry)[] = [];
  readonly #behind: BlockEntry[] = [];
  /** By the base's entries. */
  readonly #takenOver = new Map<number, number>();
  readonly #usedPacks = new Map<number, number>();
  readonly #byDigest = new Map<string, NewEntry>();

  /** `base` is the table of the image that is written against. */
  constructor(memberBlocks: number, base: Buffer | undefined) {
    this.#memberBlocks = memberBlocks;
    this.#base = base;
  }

  get count(): number {
    return this.#entries.length;
  }

  async add(block: EncodedBlock, sequence: number, store: Store): Promise<void> {
    if (block.kind === "zero") this.#entries.push(zeroEntry(block.rawBytes));
    else if (block.kind === "known") this.#entries.push(this.#adopt(block.index));
    else {
      const digest = Buffer.from(block.sha256).toString("latin1");
      const again = this.#byDigest.get(digest);
      if (again !== undefined) return void this.#entries.push(again);
      const { likeness } = block;
      const entry: NewEntry = {
        sha256: block.sha256,
        storedBytes: block.bytes.byteLength,
        rawBytes: block.rawBytes,
        sequence,
        codec: block.codec,
        depth: likeness?.depth ?? 0,
        reference: likeness === undefined ? NO_REFERENCE : this.#indexBehind(likeness.reference),
        secondReference: this.#indexOrNone(likeness?.secondReference),
        shift: likeness?.shift ?? 0,
        hint: block.hint,
        check: block.check,
        place: await store(block.bytes),
      };
      this.#byDigest.set(digest, entry);
      this.#entries.push(entry);
    }
  }

  /** The base's packs that are used, by their index there, in the order in which the entries number them. */
  get takenPacks(): readonly number[] {
    return [...this.#usedPacks.keys()];
  }

  /** All entries. The image's own packs are numbered after those from its base. */
  finish(): readonly BlockEntry[] {
    if (this.#entries.length !== this.#memberBlocks)
      throw new RangeError("An image has other blocks than its members.");
    const taken = this.#usedPacks.size;
    const placed = this.#entries.map((entry) => {
      if (!("place" in entry)) return entry;
      const { place, ...rest } = entry;
      return { ...rest, pack: place.pack === IN_IMAGE ? IN_IMAGE : place.pack + taken, offset: place.offset };
    });
    return [...placed, ...this.#behind];
  }

  #indexOrNone(index: number | undefined): number {
    return index === undefined || index === NO_REFERENCE ? NO_REFERENCE : this.#indexBehind(index);
  }

  #indexBehind(index: number): number {
    const present = this.#takenOver.get(index);
    if (present !== undefined) return present;
    const entry = this.#adopt(index);
    const at = this.#memberBlocks + this.#behind.length;
    this.#behind.push(entry);
    this.#takenOver.set(index, at);
    return at;
  }

  /** An entry of the base, with its pack and references renumbered for this image. */
  #adopt(index: number): BlockEntry {
    if (this.#base === undefined) throw new RangeError("There is no base.");
    const entry = readEntry(this.#base, index);
    const sha256 = Uint8Array.from(entry.sha256);
    if (entry.codec === CODEC.zero) return { ...entry, sha256 };
    return {
      ...entry,
      sha256,
      pack: this.#packNumber(entry.pack),
      reference: this.#indexOrNone(entry.reference),
      secondReference: this.#indexOrNone(entry.secondReference),
    };
  }

  #packNumber(pack: number): number {
    const present = this.#usedPacks.get(pack);
    if (present !== undefined) return present;
    const number = this.#usedPacks.size;
    this.#usedPacks.set(pack, number);
    return number;
  }
}
