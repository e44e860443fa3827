import { ObjectNotFoundError } from "../../store/store.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { type OpenBlockImage, readBlockContents } from "../block-image/open-block-image.ts";
import { CODEC, countEntries, IN_IMAGE, readEntry, referencesOf, ENTRY_BYTES } from "../blocks/block-table.ts";
import type { ImageContext } from "../image-context.ts";
import { isDamaged } from "../image-errors.ts";
import { isKeyProblem } from "../keys/key-errors.ts";
import { type OpenImage, openImage, packsOfImage } from "../open-image.ts";
import { packKey } from "../packs/pack-names.ts";
import { type OpenPlainImage, readPlainImage } from "../plain-image.ts";
import { checkBlocks } from "./check-blocks.ts";
import { Findings, type ImageProblem } from "./findings.ts";
import { surveyImages } from "./image-survey.ts";
import type { Pace } from "./pace.ts";
import { crc32 } from "node:zlib";

export interface ImageScrubOptions {
  readonly pace: Pace;
  /** How many threads may be at work for this. */
  readonly threads: number;
}

export interface ImageTarget {
  readonly key: string;
  /** What names it says that this is its digest. */
  readonly sha256?: string | undefined;
}

/**
 * Looks at images one after the other and remembers what was found. A block of a pack is read once however many images
 * name it, and once more when it is damaged. What goes meanwhile is no damage: an image goes before its packs do, so that
 * whoever misses something of an image that is still there misses it for good.
 */
export class ImageScrub {
  readonly findings = new Findings();
  /** What was looked at. */
  readonly looked = new Set<string>();
  readonly known = new KnownBlocks();
  readonly #context: ImageContext;
  readonly #options: ImageScrubOptions;
  /** Packs that were there when somebody looked. */
  readonly #present = new Set<string>();
  blocks = 0;
  bytes = 0;

  constructor(context: ImageContext, options: ImageScrubOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** These packs are there. */
  sighted(packs: Iterable<string>): void {
    for (const id of packs) this.#present.add(id);
  }

  /** Looks at one image; what is wrong with it, undefined when it is whole, "gone" when it is not there. */
  async look(target: ImageTarget, options: CallOptions = {}): Promise<ImageProblem | "gone" | undefined> {
    const { key } = target;
    const problem = await this.#problemOf(target, options);
    if (problem !== undefined) this.findings.problems.set(key, problem);
    const found = this.findings.problemOf(key);
    if (found !== undefined && !(await this.#isThere(key))) {
      this.findings.drop(key);
      return "gone";
    }
    this.looked.add(key);
    return found;
  }

  /** Finds the other images that need what is damaged. Nothing of them is read but what they are made of. */
  async spread(signal?: AbortSignal): Promise<void> {
    const { packs } = this.findings;
    if (packs.size === 0) return;
    const others = await surveyImages(this.#context.store, (key) => !this.looked.has(key), signal);
    for (const { key, packs: named } of others) {
      signal?.throwIfAborted();
      for (const id of named) if (this.findings.missingPacks.has(id)) this.findings.hurtByPack(key, id);
      if (!named.some((id) => packs.has(id))) continue;
      const image = await openImage(this.#context.store, key, this.#context.dataKeys).catch(undefinedIfOfContent);
      if (image === undefined || image.format === 1) continue;
      const contents = await readBlockContents(this.#context.store, image).catch(undefinedIfOfContent);
      if (contents !== undefined) this.#plan(image, contents.table);
    }
  }

  /** Images that have gone since they were looked at. */
  async dropGone(): Promise<void> {
    for (const key of this.findings.hurtImages) {
      if (this.findings.problems.get(key)?.verdict === "missing" || (await this.#isThere(key))) continue;
      this.findings.drop(key);
    }
  }

  async #problemOf({ key, sha256 }: ImageTarget, options: CallOptions): Promise<ImageProblem | undefined> {
    let image: OpenImage;
    try {
      image = await openImage(this.#context.store, key, this.#context.dataKeys);
    } catch (error) {
      return await this.#whyNotOpen(key, error);
    }
    try {
      if (sha256 !== undefined && sha256 !== image.manifestSha256) {
        return { verdict: "damaged", problem: "it is not the image that its record names" };
      }
      if (image.format === 1) await this.#readPlain(image, options);
      else await this.#readBlocks(image, options);
      return undefined;
    } catch (error) {
      // It goes while it is read; whether it does is found out by who asks.
      if (error instanceof ObjectNotFoundError) return { verdict: "unreadable", problem: "missing" };
      // Of an image of blocks nothing else is read here but what it says of itself.
      return { verdict: image.format === 1 ? "damaged" : "unreadable", problem: problemIn(error) };
    }
  }

  async #whyNotOpen(key: string, error: unknown): Promise<ImageProblem> {
    if (!isKeyProblem(error)) return { verdict: "unreadable", problem: problemIn(error) };
    const packs = await packsOfImage(this.#context.store, key).catch(undefinedIfOfContent);
    for (const id of packs ?? []) if (!(await this.#hasPack(id))) this.findings.hurtByPack(key, id);
    return { verdict: "locked", problem: (error as Error).message };
  }

  async #readPlain(image: OpenPlainImage, { signal, onProgress }: CallOptions): Promise<void> {
    for await (const { bytes } of readPlainImage(this.#context.store, image, signal)) {
      this.bytes += bytes.byteLength;
      onProgress?.({ phase: "verifying" });
      await this.#options.pace.take(bytes.byteLength, signal);
    }
  }

  async #readBlocks(image: OpenBlockImage, { signal, onProgress }: CallOptions): Promise<void> {
    const { key, envelope, sizeBytes } = image;
    const contents = await readBlockContents(this.#context.store, image);
    await this.#options.pace.take(sizeBytes, signal);
    this.bytes += sizeBytes;
    for (const { id } of envelope.packs) if (!(await this.#hasPack(id))) this.findings.hurtByPack(key, id);
    const onWhole = (indexes: readonly number[], storedBytes: number): void => {
      this.blocks += indexes.length;
      this.bytes += storedBytes;
      onProgress?.({ phase: "verifying" });
      for (const index of indexes) {
        const { pack, offset } = readEntry(contents.table, index);
        const id = envelope.packs[pack]?.id;
        if (id !== undefined) this.known.add(id, offset, printOf(contents.table, index));
      }
    };
    const options = { ...this.#options, signal, onWhole };
    const faults = await checkBlocks(this.#context, image, contents, this.#plan(image, contents.table), options);
    const guilty = [...new Set(faults.map(({ index }) => index))].toSorted((a, b) => a - b);
    // Once more, by itself: what a disk or a network gives wrong once is not damaged.
    for (const index of guilty) {
      const [fault] = await checkBlocks(this.#context, image, contents, [index], options);
      if (fault !== undefined) await this.#blame(image, contents.table, fault);
    }
  }

  async #blame(
    { key, envelope }: OpenBlockImage,
    table: Buffer,
    { index, problem }: { readonly index: number; readonly problem: string },
  ): Promise<void> {
    const { pack: place, offset, storedBytes } = readEntry(table, index);
    const pack = envelope.packs[place]?.id;
    if (pack !== undefined) this.#present.delete(pack);
    if (pack !== undefined && !(await this.#hasPack(pack))) return this.findings.hurtByPack(key, pack);
    this.blocks += 1;
    this.findings.damaged(key, { pack, offset, sizeBytes: storedBytes, problem });
  }

  /** The blocks to look at: not those that are known, and not those of which it is known that nobody can read them. */
  #plan({ key, envelope }: OpenBlockImage, table: Buffer): readonly number[] {
    const planned = new Set<number>();
    const ids = envelope.packs.map(({ id }) => id);
    const lost = new Set(ids.keys().filter((pack) => this.findings.missingPacks.has(ids[pack] ?? "")));
    const needsLost = (index: number): boolean => {
      const entry = readEntry(table, index);
      return lost.has(entry.pack) || referencesOf(entry).some(needsLost);
    };
    const indexes: number[] = [];
    for (let index = 0; index < countEntries(table); index++) {
      const { codec, pack, offset } = readEntry(table, index);
      if (codec === CODEC.zero) continue;
      const place = pack * 2 ** 32 + offset;
      if (planned.has(place)) continue;
      planned.add(place);
      const id = pack === IN_IMAGE ? undefined : (ids[pack] ?? "");
      if (id !== undefined && this.findings.hurtByBlock(key, id, offset)) continue;
      if (id !== undefined && this.known.has(id, offset, printOf(table, index))) continue;
      if (lost.size === 0 || !needsLost(index)) indexes.push(index);
    }
    return indexes;
  }

  async #hasPack(id: string): Promise<boolean> {
    if (this.#present.has(id)) return true;
    if ((await this.#context.store.stat(packKey(id))) === undefined) return false;
    this.#present.add(id);
    return true;
  }

  async #isThere(key: string): Promise<boolean> {
    return (await this.#context.store.stat(key)) !== undefined;
  }
}

/**
 * The blocks of packs that were found whole, so that a block is read once however many images name it. Some 50 bytes for
 * each block; those of a pack go as soon as no image is left that names it.
 */
class KnownBlocks {
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
function printOf(table: Buffer, index: number): number {
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

/** What is wrong with an image; whatever else is thrown is no finding. */
function problemIn(error: unknown): string {
  if (!isDamaged(error)) throw error;
  const { problem, member } = error.details;
  const where = typeof member === "string" ? `member "${member}": ` : "";
  return typeof problem === "string" ? where + problem : error.message;
}

function undefinedIfOfContent(error: unknown): undefined {
  if (!isKeyProblem(error)) problemIn(error);
}
