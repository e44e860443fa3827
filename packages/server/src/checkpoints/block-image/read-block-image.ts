import { SandboxerError } from "@sandboxer/protocol";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotKind, SnapshotMember, SnapshotPayload } from "../../backends/backend.ts";
import { ObjectNotFoundError } from "../../store/store.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import type { DecodeJob } from "../blocks/block-jobs.ts";
import { BLOCK_BYTES, IN_IMAGE, readEntry, referencesOf } from "../blocks/block-table.ts";
import { openHere, type OpenSession } from "../blocks/block-workers.ts";
import type { ImageContext } from "../image-context.ts";
import { imageDamaged, localCopyDiffers } from "../image-errors.ts";
import { openPackFiles, type PackFiles } from "../packs/pack-files.ts";
import { packKey, writerOf } from "../packs/pack-names.ts";
import type { BlockMember } from "./envelope.ts";
import { type BlockContents, type OpenBlockImage, readBlockContents } from "./open-block-image.ts";

/** So much goes to a thread at a time. */
const JOB_BLOCKS = 4;
const SMALL_BLOCKS = 8;
const FETCHES_AT_ONCE = 4;

/** Extracts every member into a folder; each block is held against its digest before it is written. */
export async function unpackBlockImage(
  context: ImageContext,
  image: OpenBlockImage,
  into: string,
  options: CallOptions = {},
): Promise<SnapshotPayload> {
  const { members: described, kind, requirements } = image.manifest;
  const members: SnapshotMember[] = [];
  for (const { name, size_bytes: sizeBytes } of described) {
    const path = join(into, name);
    await mkdir(dirname(path), { recursive: true });
    const handle = await open(path, "wx", 0o600);
    try {
      // Zeros are not written: the file has holes where they are.
      await handle.truncate(sizeBytes);
    } finally {
      await handle.close();
    }
    members.push({ name, path, sizeBytes });
  }
  const pathOf = (member: BlockMember): string => join(into, member.name);
  await readMended(context, image, { ...options, phase: "unpacking" }, pathOf);
  // A kind of a later release is refused by the backend that is asked to load it.
  return { kind: kind as SnapshotKind, members, requirements };
}

/** Reads an image for nothing but its digests. */
export async function verifyBlockImage(
  context: ImageContext,
  image: OpenBlockImage,
  options: CallOptions = {},
): Promise<void> {
  await readMended(context, image, { ...options, phase: "verifying" }, () => undefined);
}

/** What is damaged, or missing, of the packs that lie here as copies is fetched again before anybody is blamed. */
async function readMended(
  context: ImageContext,
  image: OpenBlockImage,
  { phase, ...options }: CallOptions & { readonly phase: string },
  pathOf: (member: BlockMember) => string | undefined,
): Promise<void> {
  const fetchedAgain = new Set<unknown>();
  for (;;) {
    try {
      return await new BlockImageReading(context, image, options).read(phase, pathOf);
    } catch (error) {
      const pack = error instanceof SandboxerError ? error.details["pack"] : undefined;
      const isCopy = context.store.localFile === undefined && typeof pack === "string";
      if (!isCopy || fetchedAgain.has(pack)) throw error;
      fetchedAgain.add(pack);
    }
  }
}

/** Holds files that should be an image's members against it, without a look at any pack. */
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
  readonly #files: PackFiles;
  readonly #fetches = new Map<number, Promise<string>>();
  /** Aborted when nobody waits for a pack any more. */
  readonly #over = new AbortController();

  constructor(context: ImageContext, image: OpenBlockImage, options: CallOptions) {
    this.#context = context;
    this.#image = image;
    this.#options = options;
    this.#files = openPackFiles(context.store, context.cache);
  }

  async read(phase: string, pathOf: (member: BlockMember) => string | undefined): Promise<void> {
    const { manifest } = this.#image;
    const contents = await readBlockContents(this.#context.store, this.#image);
    const session = this.#openSession(contents);
    const totalBytes = manifest.members.reduce((sum, { size_bytes: sizeBytes }) => sum + sizeBytes, 0);
    let doneBytes = 0;
    try {
      this.#fetchAll(contents);
      const jobs = [...this.#jobs(pathOf)];
      const run = async ({ member, job }: PlannedJob): Promise<void> => {
        await this.#decode(session, contents, member, job);
        doneBytes = Math.min(doneBytes + job.blockCount * BLOCK_BYTES, totalBytes);
        this.#options.onProgress?.({ phase, doneBytes, totalBytes });
      };
      await mapAtOnce(jobs, 2 * this.#context.workers.count, run, this.#options.signal);
    } finally {
      session.close();
      this.#over.abort();
      await Promise.allSettled(this.#fetches.values());
      await this.#files.close();
    }
  }

  async compare(pathOf: (member: BlockMember) => string): Promise<void> {
    const session = this.#openSession(await readBlockContents(this.#context.store, this.#image));
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

  #openSession({ table, inImage }: BlockContents): OpenSession {
    const { envelope, dataKey } = this.#image;
    const writerIds = envelope.packs.map(({ id }) => writerOf(id) ?? "");
    const image = { table, inImage, writerIds, writerId: envelope.writer_id, dataKey, packFiles: [] };
    const session = { kind: "read", image } as const;
    return envelope.table.entries <= SMALL_BLOCKS ? openHere(session) : this.#context.workers.open(session);
  }

  /** Begins to bring all packs here that are needed, a few at a time; those who need one wait for it alone. */
  #fetchAll({ table }: BlockContents): void {
    const { envelope, manifest } = this.#image;
    const blockCount = manifest.members.reduce((sum, { blocks }) => sum + blocks, 0);
    const needed = [...packsOf(table, { firstBlock: 0, blockCount })];
    const begun = new Map(needed.map((pack) => [pack, Promise.withResolvers<string>()]));
    for (const [pack, { promise }] of begun) {
      promise.catch(() => {});
      this.#fetches.set(pack, promise);
    }
    const { signal } = this.#options;
    const until = signal === undefined ? this.#over.signal : AbortSignal.any([signal, this.#over.signal]);
    const fetch = async (pack: number): Promise<void> => {
      const id = envelope.packs[pack]?.id ?? "";
      await this.#files.file(id, until).then(begun.get(pack)?.resolve, begun.get(pack)?.reject);
    };
    void mapAtOnce(needed, FETCHES_AT_ONCE, fetch);
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

  async #decode(
    session: OpenSession,
    { table }: BlockContents,
    member: BlockMember,
    job: PlannedJob["job"],
  ): Promise<void> {
    const packFiles: [number, string][] = [];
    for (const pack of packsOf(table, job)) packFiles.push([pack, await this.#fileOf(pack, member)]);
    const result = await session.run({ kind: "decode", ...job, packFiles });
    if (result.kind !== "damaged") return;
    const id = this.#image.envelope.packs[result.pack]?.id;
    if (id !== undefined && this.#context.store.localFile === undefined) await this.#context.cache.forget(id);
    const where = id === undefined ? "in the image itself" : `in ${packKey(id)}`;
    const problem = `block ${result.index - member.first_block} (${where}): ${result.problem}`;
    throw imageDamaged(this.#image.key, problem, member.name, { pack: id, block: result.index });
  }

  async #fileOf(pack: number, member: BlockMember): Promise<string> {
    try {
      return (await this.#fetches.get(pack)) ?? "";
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

/** The packs that blocks and all that they are made from are in. */
export function packsOf(
  table: Buffer,
  { firstBlock, blockCount }: Pick<DecodeJob, "firstBlock" | "blockCount">,
): ReadonlySet<number> {
  const packs = new Set<number>();
  const follow = (index: number): void => {
    const entry = readEntry(table, index);
    if (entry.pack !== IN_IMAGE) packs.add(entry.pack);
    for (const reference of referencesOf(entry)) follow(reference);
  };
  for (let index = firstBlock; index < firstBlock + blockCount; index++) follow(index);
  return packs;
}
