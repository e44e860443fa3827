import { SandboxerError } from "@sandboxer/protocol";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotMember, SnapshotPayload } from "../../backends/backend.ts";
import { ObjectNotFoundError } from "../../store/store.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { inSlices } from "../../support/in-slices.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import type { DecodeJob } from "../blocks/block-jobs.ts";
import { BLOCK_BYTES, IN_IMAGE, visitPacks } from "../blocks/block-table.ts";
import { openHere, type OpenSession } from "../blocks/block-workers.ts";
import type { ImageContext } from "../image-context.ts";
import { imageDamaged, localCopyDiffers } from "../image-errors.ts";
import { openPackFiles, type PackFiles } from "../packs/pack-files.ts";
import { packKey, writerOf } from "../packs/pack-names.ts";
import type { BlockMember } from "./envelope.ts";
import { type BlockContents, type OpenBlockImage, readBlockContents } from "./open-block-image.ts";
import { inRounds, type NeedsPacks, type Round } from "./reading-rounds.ts";

const FETCHES_AT_ONCE = 4;
/** The size of one job for a thread. */
const JOB_BLOCKS = 4;
const SMALL_BLOCKS = 8;
/** Other readers of the same bad copy of a pack may delete the good one that replaced it. */
const MOST_ATTEMPTS = 4;

/** Extracts every member into a folder; each block is compared with its digest before it is written. */
export async function unpackBlockImage(
  context: ImageContext,
  image: OpenBlockImage,
  into: string,
  options: CallOptions = {},
): Promise<SnapshotPayload> {
  const { members: described, kind, requirements } = image.manifest;
  const members: SnapshotMember[] = [];
  await checkFits(context, image, into);
  for (const { name, size_bytes: sizeBytes } of described) {
    const path = join(into, name);
    await mkdir(dirname(path), { recursive: true });
    const handle = await open(path, "wx", 0o600);
    try {
      // Zeros are not written: the file has holes there.
      await handle.truncate(sizeBytes);
    } finally {
      await handle.close();
    }
    members.push({ name, path, sizeBytes });
  }
  const pathOf = (member: BlockMember): string => join(into, member.name);
  await readMended(context, image, { ...options, phase: "unpacking" }, pathOf);
  // The backend refuses a kind of a later release.
  return { kind, members, requirements };
}

/**
 * A few kilobytes can claim to be a terabyte. A state is memory and files of a sandbox: a state larger than this
 * machine's memory and disk is refused before anything is created.
 */
async function checkFits(context: ImageContext, { key, manifest }: OpenBlockImage, into: string): Promise<void> {
  const stateBytes = manifest.members.reduce((sum, { size_bytes: sizeBytes }) => sum + sizeBytes, 0);
  const machineBytes = await context.machineBytes(into);
  if (stateBytes <= machineBytes) return;
  throw new SandboxerError(
    "no_space",
    `The state in ${key} has ${stateBytes} bytes; the memory and disk of this machine have ${machineBytes}.`,
    { hint: "Restore it on a machine with more memory and disk." },
  );
}

/** Reads an image only to check its digests. */
export async function verifyBlockImage(
  context: ImageContext,
  image: OpenBlockImage,
  options: CallOptions = {},
): Promise<void> {
  await readMended(context, image, { ...options, phase: "verifying" }, () => undefined);
}

/** Damaged or missing local copies of packs are fetched again before the image is reported as damaged. */
async function readMended(
  context: ImageContext,
  image: OpenBlockImage,
  { phase, ...options }: CallOptions & { readonly phase: string },
  pathOf: (member: BlockMember) => string | undefined,
): Promise<void> {
  const attempts = new Map<string, number>();
  for (;;) {
    try {
      return await new BlockImageReading(context, image, options).read(phase, pathOf);
    } catch (error) {
      const pack = error instanceof SandboxerError ? error.details["pack"] : undefined;
      const isCopy = context.store.localFile === undefined && typeof pack === "string";
      const attempt = isCopy ? (attempts.get(pack) ?? 0) + 1 : Infinity;
      if (!isCopy || attempt >= MOST_ATTEMPTS) throw error;
      attempts.set(pack, attempt);
    }
  }
}

/** Compares files that should be an image's members with it, without reading any pack. */
export async function compareBlockImage(
  context: ImageContext,
  image: OpenBlockImage,
  folder: string,
  options: CallOptions = {},
): Promise<void> {
  await new BlockImageReading(context, image, options).compare((member) => join(folder, member.name));
}

class BlockImageReading {
  readonly #context: ImageContext;
  readonly #image: OpenBlockImage;
  readonly #options: CallOptions;

  constructor(context: ImageContext, image: OpenBlockImage, options: CallOptions) {
    this.#context = context;
    this.#image = image;
    this.#options = options;
  }

  async read(phase: string, pathOf: (member: BlockMember) => string | undefined): Promise<void> {
    const { manifest } = this.#image;
    const contents = await readBlockContents(this.#context.store, this.#image);
    const totalBytes = manifest.members.reduce((sum, { size_bytes: sizeBytes }) => sum + sizeBytes, 0);
    let doneBytes = 0;
    const onDone = (blockCount: number): void => {
      doneBytes = Math.min(doneBytes + blockCount * BLOCK_BYTES, totalBytes);
      this.#options.onProgress?.({ phase, doneBytes, totalBytes });
    };
    for (const round of await this.#rounds(contents, pathOf)) await this.#readRound(contents, round, onDone);
  }

  /** One session for each: its threads have files open, which use disk space even after the cache has dropped them. */
  async #readRound(contents: BlockContents, round: Round<ReadJob>, onDone: (blocks: number) => void): Promise<void> {
    const { packs } = this.#image.envelope;
    const ids = new Map([...round.packs].map((pack) => [pack, packs[pack]?.id ?? ""]));
    const session = openReading(this.#context, this.#image, contents);
    const fetches = new PackFetches(this.#context, ids, this.#options.signal);
    const run = async (job: ReadJob): Promise<void> => {
      await this.#decode(session, fetches, job);
      onDone(job.job.blockCount);
    };
    try {
      await mapAtOnce(round.jobs, 2 * this.#context.workers.count, run, this.#options.signal);
    } finally {
      session.close();
      await fetches.close();
    }
  }

  /** Packs of a remote store are cached here meanwhile, no more at a time than the cache has room for. */
  async #rounds(
    { table }: BlockContents,
    pathOf: (member: BlockMember) => string | undefined,
  ): Promise<readonly Round<ReadJob>[]> {
    const { store, cache } = this.#context;
    const { packs } = this.#image.envelope;
    const roomBytes = store.localFile === undefined ? cache.limitBytes : Infinity;
    // Most jobs need the same packs.
    const known = new Map<string, ReadonlySet<number>>();
    const jobs: ReadJob[] = [];
    const planned = [...this.#jobs(pathOf)];
    await inSlices(planned.length, (index) => {
      const each = planned[index] as PlannedJob;
      const needed = packsOf(table, each.job);
      const name = [...needed].join();
      known.set(name, known.get(name) ?? needed);
      jobs.push({ ...each, packs: known.get(name) ?? needed });
    });
    return inRounds(jobs, (pack) => packs[pack]?.size_bytes ?? 0, roomBytes);
  }

  async compare(pathOf: (member: BlockMember) => string): Promise<void> {
    const session = openReading(this.#context, this.#image, await readBlockContents(this.#context.store, this.#image));
    const run = async ({ member, job }: PlannedJob): Promise<void> => {
      const { firstBlock, blockCount, into } = job;
      if (into === undefined) return;
      const result = await session.run({ kind: "compare", firstBlock, blockCount, file: into });
      if (result.kind === "decoded") return;
      throw localCopyDiffers(this.#image.key, member.name);
    };
    try {
      await mapAtOnce([...this.#jobs(pathOf)], 2 * this.#context.workers.count, run, this.#options.signal);
    } finally {
      session.close();
    }
  }

  *#jobs(pathOf: (member: BlockMember) => string | undefined): Generator<PlannedJob> {
    for (const member of this.#image.manifest.members) {
      const path = pathOf(member);
      for (let block = 0; block < member.blocks; block += JOB_BLOCKS) {
        const into = path === undefined ? undefined : { path, position: block * BLOCK_BYTES };
        const blockCount = Math.min(JOB_BLOCKS, member.blocks - block);
        yield { member, job: { firstBlock: member.first_block + block, blockCount, into } };
      }
    }
  }

  async #decode(session: OpenSession, fetches: PackFetches, { member, job, packs }: ReadJob): Promise<void> {
    const packFiles: [number, string][] = [];
    for (const pack of packs) packFiles.push([pack, await this.#fileOf(fetches, pack, member)]);
    const result = await session.run({ kind: "decode", ...job, packFiles });
    if (result.kind !== "damaged") return;
    // If the store has disappeared, every pack is missing, and none is damaged.
    await this.#context.store.verify?.();
    const id = this.#image.envelope.packs[result.pack]?.id;
    if (id !== undefined && this.#context.store.localFile === undefined) await this.#context.cache.forget(id);
    const where = id === undefined ? "in the image itself" : `in ${packKey(id)}`;
    const problem = `block ${result.index - member.first_block} (${where}): ${result.problem}`;
    throw imageDamaged(this.#image.key, problem, member.name, { pack: id, block: result.index });
  }

  async #fileOf(fetches: PackFetches, pack: number, member: BlockMember): Promise<string> {
    try {
      return await fetches.file(pack);
    } catch (error) {
      if (!(error instanceof ObjectNotFoundError)) throw error;
      throw imageDamaged(this.#image.key, `its pack ${error.key} is not in the store`, member.name);
    }
  }
}

interface PlannedJob {
  readonly member: BlockMember;
  readonly job: Omit<DecodeJob, "kind" | "packFiles">;
}

type ReadJob = PlannedJob & NeedsPacks;

/** Opens the blocks of an image for reading; `blockCount` is how many will be read. */
export function openReading(
  { workers }: Pick<ImageContext, "workers">,
  { envelope, dataKey }: OpenBlockImage,
  contents: BlockContents,
  blockCount: number = envelope.table.entries,
): OpenSession {
  const writerIds = envelope.packs.map(({ id }) => writerOf(id) ?? "");
  const image = { ...contents, writerIds, writerId: envelope.writer_id, dataKey, packFiles: [] };
  const session = { kind: "read", image } as const;
  return blockCount <= SMALL_BLOCKS ? openHere(session) : workers.open(session);
}

/** The packs of blocks and of everything that they depend on. */
export function packsOf(
  table: Buffer,
  { firstBlock, blockCount }: Pick<DecodeJob, "firstBlock" | "blockCount">,
): ReadonlySet<number> {
  const packs = new Set<number>();
  for (let index = firstBlock; index < firstBlock + blockCount; index++) {
    visitPacks(table, index, (pack) => {
      if (pack !== IN_IMAGE) packs.add(pack);
    });
  }
  return packs;
}

/**
 * Fetches packs of an image, a few at a time, and keeps them until it is closed; a caller waits only for its own pack.
 */
class PackFetches {
  readonly #files: PackFiles;
  readonly #fetches: ReadonlyMap<number, PromiseWithResolvers<string>>;
  /** Aborted when nobody waits for a pack any more. */
  readonly #over = new AbortController();

  /** `packs`: their numbers in the image, and their ids. */
  constructor(
    { store, cache }: Pick<ImageContext, "store" | "cache">,
    packs: ReadonlyMap<number, string>,
    signal: AbortSignal | undefined,
  ) {
    this.#files = openPackFiles(store, cache);
    this.#fetches = new Map([...packs.keys()].map((pack) => [pack, Promise.withResolvers<string>()]));
    const until = signal === undefined ? this.#over.signal : AbortSignal.any([signal, this.#over.signal]);
    const fetch = async ([pack, { promise, resolve, reject }]: [number, PromiseWithResolvers<string>]) => {
      promise.catch(() => {});
      await this.#files.file(packs.get(pack) ?? "", until).then(resolve, reject);
    };
    void mapAtOnce([...this.#fetches], FETCHES_AT_ONCE, fetch);
  }

  /** The path of a pack; throws ObjectNotFoundError. */
  async file(pack: number): Promise<string> {
    return (await this.#fetches.get(pack)?.promise) ?? "";
  }

  async close(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled([...this.#fetches.values()].map(({ promise }) => promise));
    await this.#files.close();
  }
}
