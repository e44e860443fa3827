import { ObjectNotFoundError } from "../../store/store.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import type { BlockContents, OpenBlockImage } from "../block-image/open-block-image.ts";
import { openReading, packsOf } from "../block-image/read-block-image.ts";
import { readEntry, referencesOf } from "../blocks/block-table.ts";
import type { OpenSession } from "../blocks/block-workers.ts";
import type { ImageContext } from "../image-context.ts";
import { openPackFiles, type PackFiles } from "../packs/pack-files.ts";
import type { Pace } from "./pace.ts";

const RUN_BLOCKS = 4;
/** After this many blocks the packs are released, so that little of a remote store is cached at a time. */
const BATCH_BLOCKS = 512;

/** A block that does not match its entry, or a missing pack. */
export interface BlockFault {
  readonly index: number;
  readonly problem: string;
}

export interface CheckOptions {
  readonly pace: Pace;
  /** How many threads may work on this. */
  readonly threads: number;
  readonly signal: AbortSignal | undefined;
  /** These blocks are intact. */
  readonly onWhole: (indexes: readonly number[], storedBytes: number) => void;
}

/** Reads blocks of an image and compares them with their digests, in threads. The indexes are in order. */
export async function checkBlocks(
  context: Pick<ImageContext, "store" | "workers" | "cache">,
  image: OpenBlockImage,
  contents: BlockContents,
  indexes: readonly number[],
  options: CheckOptions,
): Promise<readonly BlockFault[]> {
  const faults: BlockFault[] = [];
  for (let at = 0; at < indexes.length; at += BATCH_BLOCKS) {
    const batch = indexes.slice(at, at + BATCH_BLOCKS);
    faults.push(...(await new BlockBatch(context, image, contents, options).check(batch)));
  }
  return faults;
}

class BlockBatch {
  readonly #image: OpenBlockImage;
  readonly #contents: BlockContents;
  readonly #options: CheckOptions;
  readonly #files: PackFiles;
  readonly #workers: ImageContext["workers"];

  constructor(
    { store, cache, workers }: Pick<ImageContext, "store" | "workers" | "cache">,
    image: OpenBlockImage,
    contents: BlockContents,
    options: CheckOptions,
  ) {
    this.#image = image;
    this.#contents = contents;
    this.#options = options;
    this.#workers = workers;
    this.#files = openPackFiles(store, cache);
  }

  async check(indexes: readonly number[]): Promise<readonly BlockFault[]> {
    const session = openReading({ workers: this.#workers }, this.#image, this.#contents, indexes.length);
    const { threads, signal } = this.#options;
    try {
      const check = async (run: readonly number[]) => await this.#checkRun(session, run);
      return (await mapAtOnce(runsOf(indexes), threads, check, signal)).flat();
    } finally {
      session.close();
      await this.#files.close();
    }
  }

  async #checkRun(session: OpenSession, run: readonly number[]): Promise<readonly BlockFault[]> {
    const storedBytes = run.reduce((sum, index) => sum + readEntry(this.#contents.table, index).storedBytes, 0);
    await this.#options.pace.take(storedBytes, this.#options.signal);
    const fault = await this.#decode(session, run);
    if (fault === undefined) {
      this.#options.onWhole(run, storedBytes);
      return [];
    }
    if (run.length === 1) return [fault];
    const faults: BlockFault[] = [];
    for (const index of run) faults.push(...(await this.#checkRun(session, [index])));
    return faults;
  }

  /** The index of a fault may be that of a block that the requested ones are differences to. */
  async #decode(session: OpenSession, run: readonly number[]): Promise<BlockFault | undefined> {
    const firstBlock = run[0] ?? 0;
    const packFiles: [number, string][] = [];
    for (const pack of packsOf(this.#contents.table, { firstBlock, blockCount: run.length })) {
      const id = this.#image.envelope.packs[pack]?.id ?? "";
      try {
        packFiles.push([pack, await this.#files.file(id, this.#options.signal)]);
      } catch (error) {
        if (!(error instanceof ObjectNotFoundError)) throw error;
        return { index: firstInPack(this.#contents.table, run, pack) ?? firstBlock, problem: "its pack is missing" };
      }
    }
    const result = await session.run({
      kind: "decode",
      firstBlock,
      blockCount: run.length,
      packFiles,
      into: undefined,
    });
    return result.kind === "damaged" ? { index: result.index, problem: result.problem } : undefined;
  }
}

/** The first block that is in a pack, of these and of those that they depend on. */
function firstInPack(table: Buffer, indexes: readonly number[], pack: number): number | undefined {
  for (const index of indexes) {
    const entry = readEntry(table, index);
    const found = entry.pack === pack ? index : firstInPack(table, referencesOf(entry), pack);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Consecutive blocks, a few at a time. */
function runsOf(indexes: readonly number[]): readonly (readonly number[])[] {
  const runs: number[][] = [];
  for (const index of indexes) {
    const last = runs.at(-1);
    if (last !== undefined && last.length < RUN_BLOCKS && last.at(-1) === index - 1) last.push(index);
    else runs.push([index]);
  }
  return runs;
}
