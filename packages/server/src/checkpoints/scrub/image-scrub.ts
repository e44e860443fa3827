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
  /** How many threads may work on this. */
  readonly threads: number;
}

export interface ImageTarget {
  readonly key: string;
  /** The digest according to its reference. */
  readonly sha256?: string | undefined;
}

/**
 * Checks images one after the other and remembers the results. A block of a pack is read once however many images
 * reference it, and once more if it is damaged. Objects that disappear meanwhile are not damage: an image is removed
 * before its packs, so a part that is missing from an existing image is really lost.
 */
export class ImageScrub {
  readonly findings = new Findings();
  /** The counts of what was checked. */
  readonly looked = new Set<string>();
  readonly known = new KnownBlocks();
  readonly #context: ImageContext;
  readonly #options: ImageScrubOptions;
  /** Packs that existed at the last look. */
  readonly #present = new Set<string>();
  blocks = 0;
  bytes = 0;

  constructor(context: ImageContext, options: ImageScrubOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** These packs exist. */
  sighted(packs: Iterable<string>): void {
    for (const id of packs) this.#present.add(id);
  }

  /** Checks one image; returns its problem, undefined if it is intact, "gone" if it does not exist. */
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

  /** Finds the other images that need damaged blocks. Only their tables are read. */
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

  /** Images that were removed since they were checked. */
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
      // It is removed while it is read; the caller finds out.
      if (error instanceof ObjectNotFoundError) return { verdict: "unreadable", problem: "missing" };
      // For a block image, only its metadata is read here.
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
    // Once more: a single wrong read of a disk or network is not damage.
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

  /** The blocks to check: without known ones, and without those that are known to be unreadable. */
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
 * The blocks of packs that were found intact, so that a block is read once however many images reference it. Some 50
 * bytes for each block; those of a pack are dropped when no remaining image references it.
 */
class KnownBlocks {
  /** By pack: offsets, with a fingerprint of the entry that the block was compared with. */
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

/** The facts of an entry about its block, without its location: an image with different ones is checked again. */
function printOf(table: Buffer, index: number): number {
  const at = index * ENTRY_BYTES;
  let print = crc32(table.subarray(at, at + 32));
  print = crc32(table.subarray(at + 40, at + 54), print);
  print = crc32(table.subarray(at + 64, at + 68), print);
  for (const reference of referencesOf(readEntry(table, index))) {
    print = crc32(table.subarray(reference * ENTRY_BYTES, reference * ENTRY_BYTES + 32), print);
  }
  // As a number, which needs no object.
  return print | 0;
}

/** Converts a thrown problem of an image; any other error is rethrown. */
function problemIn(error: unknown): string {
  if (!isDamaged(error)) throw error;
  const { problem, member } = error.details;
  const where = typeof member === "string" ? `member "${member}": ` : "";
  return typeof problem === "string" ? where + problem : error.message;
}

function undefinedIfOfContent(error: unknown): undefined {
  if (!isKeyProblem(error)) problemIn(error);
}
