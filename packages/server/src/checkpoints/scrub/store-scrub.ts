import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CallOptions } from "../../support/call-options.ts";
import type { Clock } from "../../support/clock.ts";
import type { ImageContext } from "../image-context.ts";
import { removeAbandoned } from "../local-room.ts";
import { shunPacks } from "../packs/condemned.ts";
import { PackCache } from "../packs/pack-cache.ts";
import { listPacks } from "../packs/pack-names.ts";
import type { DamagedBlock, ImageProblem, ImageVerdict } from "./findings.ts";
import { ImageScrub, type ImageTarget } from "./image-scrub.ts";
import { inFamilies, type SurveyedImage, surveyImages } from "./image-survey.ts";
import { Pace } from "./pace.ts";

const SCRATCH = /^sandboxer-scrub-/;
/** Packs come and go all the time, so the list is refreshed unless reading is very slow. */
const SCRATCH_ABANDONED_MS = 24 * 3_600_000;
/** How much of a remote store's packs may be cached, besides what is being read. */
const SCRATCH_BYTES = 256 * 1024 ** 2;

export interface ScrubOptions {
  readonly clock: Clock;
  /** Absent: no limit. */
  readonly bytesPerSecond?: number | undefined;
  /** How many threads may work on this; absent: one, so that saves and restores find the others free. */
  readonly threads?: number | undefined;
  /** Folder for packs of a remote store. Leftovers of a killed process are removed by a later one. */
  readonly workDirectory?: string | undefined;
}

/** The images that heads and records reference, with their digests if known. */
export type NamedImages = () => Promise<ReadonlyMap<string, string | undefined>>;

export interface ScrubResult {
  readonly images: Readonly<Record<ImageVerdict, number>>;
  /** Distinct blocks that were read, and all bytes. */
  readonly blocks: number;
  readonly bytes: number;
  readonly damagedBlocks: readonly DamagedBlock[];
  readonly missingPacks: readonly { readonly pack: string; readonly images: ReadonlySet<string> }[];
  /** The checked images. */
  readonly looked: ReadonlySet<string>;
  /** Every image with a problem, including locked ones. */
  readonly problems: ReadonlyMap<string, ImageProblem>;
  /** Packs that no image references: garbage, or parts of a save in progress. */
  readonly unnamedPacks: { readonly count: number; readonly bytes: number };
}

/**
 * Checks saved states image by image, with a set of the blocks that were found intact. Images that share packs are
 * adjacent: one table at a time is in memory, and knowledge about a pack is dropped with its last image. Checking pack
 * by pack would need the tables of all images at once, because only they describe the contents of a pack.
 *
 * Packs of a remote store are fetched for this check: a local copy says nothing about the store.
 */
export class StoreScrub {
  readonly pace: Pace;
  readonly #context: ImageContext;
  readonly #scratch: string;
  readonly #scrub: ImageScrub;
  #unnamedPacks = { count: 0, bytes: 0 };

  constructor(context: ImageContext, { clock, bytesPerSecond, threads = 1, workDirectory = tmpdir() }: ScrubOptions) {
    this.#scratch = join(workDirectory, `sandboxer-scrub-${randomUUID()}`);
    this.pace = new Pace(clock, bytesPerSecond);
    this.#context = { ...context, cache: new PackCache(this.#scratch, SCRATCH_BYTES) };
    this.#scrub = new ImageScrub(this.#context, { pace: this.pace, threads });
  }

  get doneBytes(): number {
    return this.#scrub.bytes;
  }

  /**
   * Checks some images, and finds all others that need damaged blocks. A missing image that is referenced after that
   * was found out is `missing`.
   */
  async verify(
    targets: readonly ImageTarget[],
    isNamed: (key: string) => Promise<boolean>,
    options: CallOptions = {},
  ): Promise<ScrubResult> {
    return await this.#cleaningUp(async () => {
      for (const target of targets) {
        this.#tell(options, "verifying", undefined);
        const found = await this.#scrub.look(target, this.#telling(options, "verifying", undefined));
        if (found === "gone" && (await isNamed(target.key))) this.#missing(target.key);
      }
      await this.#scrub.spread(options.signal);
    });
  }

  /** Checks everything. If it is aborted, the next call continues where it stopped. */
  async run(named: NamedImages, options: CallOptions = {}): Promise<ScrubResult> {
    return await this.#cleaningUp(async () => {
      const { signal } = options;
      const digests = await named();
      const { packs } = await listPacks(this.#context.store);
      this.#scrub.sighted(packs.keys());
      const all = await surveyImages(this.#context.store, () => true, signal);
      const totalBytes = bytesOf(all, packs);
      const telling = this.#telling(options, "scrubbing", totalBytes);
      const left = inFamilies(all.filter(({ key }) => !this.#scrub.looked.has(key)));
      const users = countUsers(left);
      for (const { key, packs: used } of left) {
        signal?.throwIfAborted();
        await this.#scrub.look({ key, sha256: digests.get(key) }, telling);
        this.#tell(options, "scrubbing", totalBytes);
        for (const id of used) {
          const others = (users.get(id) ?? 1) - 1;
          users.set(id, others);
          if (others === 0) this.#scrub.known.forget(id);
        }
      }
      const seen = new Set(all.map(({ key }) => key));
      await this.#findMissing(digests, seen, named);
      // Images that were saved meanwhile may share damaged blocks.
      await this.#scrub.spread(signal);
      await this.#scrub.dropGone();
      this.#unnamedPacks = unnamedOf(all, packs);
    });
  }

  async #findMissing(
    digests: ReadonlyMap<string, string | undefined>,
    seen: ReadonlySet<string>,
    named: NamedImages,
  ): Promise<void> {
    const absent: string[] = [];
    for (const key of digests.keys()) {
      if (!seen.has(key) && (await this.#context.store.stat(key)) === undefined) absent.push(key);
    }
    if (absent.length === 0) return;
    // Names are not reused: an image that is referenced after it was found missing is not being removed.
    const still = await named();
    for (const key of absent) if (still.has(key)) this.#missing(key);
  }

  #missing(key: string): void {
    this.#scrub.looked.add(key);
    this.#scrub.findings.problems.set(key, { verdict: "missing", problem: "it is not in the store" });
  }

  #telling(options: CallOptions, phase: string, totalBytes: number | undefined): CallOptions {
    return { ...options, onProgress: () => this.#tell(options, phase, totalBytes) };
  }

  #tell({ onProgress }: CallOptions, phase: string, totalBytes: number | undefined): void {
    const doneBytes = this.#scrub.bytes;
    const total = totalBytes === undefined ? {} : { totalBytes: Math.max(totalBytes, doneBytes) };
    onProgress?.({ phase, doneBytes, ...total });
  }

  async #cleaningUp(work: () => Promise<void>): Promise<ScrubResult> {
    await removeAbandoned(dirname(this.#scratch), SCRATCH, SCRATCH_ABANDONED_MS);
    try {
      await work();
      await shunPacks(this.#context.store, this.#scrub.findings.packs);
    } finally {
      await rm(this.#scratch, { recursive: true, force: true });
    }
    return this.#result();
  }

  #result(): ScrubResult {
    const { findings, looked, blocks, bytes } = this.#scrub;
    const problems = new Map<string, ImageProblem>();
    for (const key of findings.hurtImages) {
      const problem = findings.problemOf(key);
      if (problem !== undefined) problems.set(key, problem);
    }
    const images = { whole: 0, damaged: 0, unreadable: 0, missing: 0, locked: 0 };
    for (const { verdict } of problems.values()) images[verdict] += 1;
    for (const key of looked) if (!problems.has(key)) images.whole += 1;
    const missingPacks = [...findings.missingPacks].map(([pack, hurt]) => ({ pack, images: hurt }));
    const damagedBlocks = [...findings.blocks.values()];
    const unnamedPacks = this.#unnamedPacks;
    return { images, looked, blocks, bytes, damagedBlocks, missingPacks, problems, unnamedPacks };
  }
}

function countUsers(images: readonly SurveyedImage[]): Map<string, number> {
  const users = new Map<string, number>();
  for (const { packs } of images) for (const id of packs) users.set(id, (users.get(id) ?? 0) + 1);
  return users;
}

function bytesOf(images: readonly SurveyedImage[], packs: ReadonlyMap<string, number>): number {
  const named = new Set(images.flatMap((image) => image.packs));
  const ofPacks = [...named].reduce((sum, id) => sum + (packs.get(id) ?? 0), 0);
  return images.reduce((sum, { sizeBytes }) => sum + sizeBytes, ofPacks);
}

function unnamedOf(images: readonly SurveyedImage[], packs: ReadonlyMap<string, number>) {
  const named = new Set(images.flatMap((image) => image.packs));
  const unnamed = [...packs].filter(([id]) => !named.has(id));
  return { count: unnamed.length, bytes: unnamed.reduce((sum, [, sizeBytes]) => sum + sizeBytes, 0) };
}
