import { randomUUID } from "node:crypto";
import { isSandboxId } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { mapAtOnce } from "../../support/map-at-once.ts";
import { BlockCipher } from "../blocks/block-cipher.ts";
import { type BlockEntry, BLOCK_BYTES, CODEC, encodeTable, IN_IMAGE } from "../blocks/block-table.ts";
import { openHere, type OpenSession } from "../blocks/block-workers.ts";
import { compress } from "../blocks/compression.ts";
import type { PlainCopy } from "../blocks/plain-copies.ts";
import { ImageMayBeThereError } from "../image-errors.ts";
import type { ImageContext, ImageLabel, WriteImageOptions } from "../image-context.ts";
import { encodeFooter, encodeHeaderStart, sha256Of } from "../image-format.ts";
import { checkMemberNames } from "../member-names.ts";
import { markShared } from "../packs/owned-packs.ts";
import { openPackFiles, type PackFiles } from "../packs/pack-files.ts";
import { ownerOf, packKey, writerOf } from "../packs/pack-names.ts";
import { PackWriter, type WrittenPack } from "../packs/pack-writer.ts";
import type { PackPin } from "../packs/pins.ts";
import { type BaseImage, openBase } from "./base-image.ts";
import { BlockSink } from "./block-sink.ts";
import { encodeMembers } from "./encode-members.ts";
import { EntryList } from "./entry-list.ts";
import type { OpenBlockImage } from "./open-block-image.ts";
import {
  associatedWith,
  type BlockFormat,
  type BlockManifest,
  type Envelope,
  MANIFEST_SEQUENCE,
  TABLE_SEQUENCE,
} from "./envelope.ts";

/** Smaller data is not worth sending to another thread. */
const SMALL_BYTES = 2 * 1024 * 1024;
const STATS_AT_ONCE = 16;

/** Everything that an image needs is in the store; this is what remains to be written under the image's name. */
export interface ReadyImage {
  readonly bytes: Buffer;
  /** The digest that a head or a record names. */
  readonly sha256: string;
  /** Its size with all blocks that it consists of. */
  readonly sizeBytes: number;
  /** The part that was not in the store before. */
  readonly addedBytes: number;
}

/**
 * Writes blocks that a state does not share with its base to packs, and passes the image on to be placed. Everything
 * that the image references stays pinned until `place` has ended. On failure the written packs are removed, unless the
 * image may exist.
 */
export async function writeBlockImage<Placed>(
  context: ImageContext,
  state: SnapshotPayload,
  label: ImageLabel,
  options: CallOptions & WriteImageOptions,
  place: (image: ReadyImage) => Promise<Placed>,
): Promise<Placed> {
  checkMemberNames(state.members);
  const writing = new BlockImageWriting(context, state, label, options);
  try {
    return await place(await writing.write());
  } catch (error) {
    // An image that may exist keeps its packs; garbage collection judges both.
    if (!(error instanceof ImageMayBeThereError)) await writing.giveUp(error);
    throw error;
  } finally {
    await writing.close();
  }
}

class BlockImageWriting {
  readonly #context: ImageContext;
  readonly #state: SnapshotPayload;
  readonly #label: ImageLabel;
  readonly #options: CallOptions & WriteImageOptions;
  readonly #writerId = randomUUID();
  readonly #sink = new BlockSink(async () => await this.#beginPacks());
  readonly #packFiles: PackFiles;
  #pin: PackPin | undefined;

  constructor(
    context: ImageContext,
    state: SnapshotPayload,
    label: ImageLabel,
    options: CallOptions & WriteImageOptions,
  ) {
    this.#context = context;
    this.#state = state;
    this.#label = label;
    this.#options = options;
    this.#packFiles = openPackFiles(context.store, context.cache);
  }

  async write(): Promise<ReadyImage> {
    const { base: baseKey, dataKey } = this.#options;
    const found = baseKey === undefined ? undefined : await openBase(this.#context, baseKey, dataKey?.id);
    const base = found && { ...found, packIds: found.image.envelope.packs.map(({ id }) => id) };
    if (base !== undefined) {
      const request = { imageKey: base.image.key, packs: base.packIds };
      this.#pin = await this.#context.pins.hold({ uuid: this.#writerId, base: request });
    }
    const entries = new EntryList(blockCountOf(this.#state), base?.contents.table);
    const session = await this.#openSession(base);
    try {
      const ahead = { ...this.#options, jobsAhead: 2 * this.#context.workers.count };
      for await (const block of encodeMembers(session, this.#state, base, ahead)) {
        await entries.add(block, entries.count, (bytes) => this.#sink.add(bytes));
      }
    } finally {
      session.close();
    }
    const { inImage, packs } = await this.#sink.finish();
    const taken = entries.takenPacks
      .map((pack) => base?.image.envelope.packs[pack])
      .filter((pack) => pack !== undefined);
    await markShared(this.#context.store, taken, this.#owner);
    const bound = dataKey !== undefined && (await this.#context.bindsOrigin());
    return this.#assemble(entries.finish(), inImage, [...taken, ...packs], packs, bound);
  }

  /** Removes packs that nothing will reference. */
  async giveUp(reason: unknown): Promise<void> {
    const error = reason instanceof Error ? reason : new Error(String(reason));
    // Garbage collection finds leftovers once the pin is removed.
    await this.#sink.abort(error).catch(() => {});
  }

  async close(): Promise<void> {
    try {
      await this.#packFiles.close();
    } finally {
      await this.#pin?.release();
    }
  }

  get #owner(): string {
    return this.#options.snapshotId ?? this.#label.sandboxId;
  }

  async #beginPacks(): Promise<PackWriter> {
    const { store, cache, pins } = this.#context;
    this.#pin ??= await pins.hold({ uuid: this.#writerId });
    const { signal } = this.#options;
    const isOwned = isSandboxId(this.#owner) && (await this.#context.packsHaveOwners());
    const options = { store, cache, writerId: this.#writerId, owner: isOwned ? this.#owner : undefined };
    return new PackWriter({ ...options, ...(signal === undefined ? {} : { signal }) });
  }

  async #openSession(base: (BaseImage & { readonly packIds: readonly string[] }) | undefined): Promise<OpenSession> {
    const dataKey = this.#options.dataKey?.bytes;
    const usable = base && (await this.#usablePacks(base));
    const session = {
      kind: "write",
      writerId: this.#writerId,
      dataKey,
      base: base && {
        image: await this.#readable(base, usable ?? []),
        memberBlocks: base.image.manifest.members.reduce((sum, { blocks }) => sum + blocks, 0),
        usablePacks: usable ?? [],
        copies: await this.#copiesOf(base.image),
      },
    } as const;
    const totalBytes = this.#state.members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const isSmall = totalBytes + (base?.contents.table.byteLength ?? 0) <= SMALL_BYTES;
    return isSmall ? openHere(session) : this.#context.workers.open(session);
  }

  /** The base vouches for its packs; blocks that were lost since are written again while they are available. */
  async #usablePacks({ image, usefulPacks }: BaseImage): Promise<readonly boolean[]> {
    const { packs } = image.envelope;
    const isUsable = async (pack: number): Promise<boolean> => {
      const { id, size_bytes: sizeBytes } = packs[pack] ?? { id: "", size_bytes: -1 };
      if (usefulPacks[pack] !== true || this.#pin?.isCondemned(id) !== false) return false;
      return (await this.#context.store.stat(packKey(id)))?.sizeBytes === sizeBytes;
    };
    return await mapAtOnce([...packs.keys()], STATS_AT_ONCE, isUsable, this.#options.signal);
  }

  /** The base's members as plain files on this machine: reading them is cheaper than decoding their blocks. */
  async #copiesOf({ manifest, manifestSha256 }: OpenBlockImage): Promise<readonly PlainCopy[]> {
    const members = manifest.members.map(({ name, size_bytes: sizeBytes }) => ({ name, sizeBytes }));
    const found = (await this.#context.unpacked?.find(manifestSha256, members)) ?? [];
    return found.map(({ path }, index) => {
      const { first_block: firstBlock = 0, blocks: blockCount = 0 } = manifest.members[index] ?? {};
      return { firstBlock, blockCount, path };
    });
  }

  /** The base's packs that are on this machine: differences are only made to local blocks. */
  async #readable(
    { image, contents, packIds }: BaseImage & { packIds: readonly string[] },
    usable: readonly boolean[],
  ) {
    const packFiles: [number, string][] = [];
    for (const [pack, id] of packIds.entries()) {
      const path = usable[pack] === true ? await this.#packFiles.fileIfHere(id) : undefined;
      if (path !== undefined) packFiles.push([pack, path]);
    }
    const writerIds = packIds.map((id) => writerOf(id) ?? "");
    return { ...contents, writerIds, writerId: image.envelope.writer_id, dataKey: image.dataKey, packFiles };
  }

  #assemble(
    entries: readonly BlockEntry[],
    inImage: Uint8Array,
    packs: readonly WrittenPack[],
    ownPacks: readonly WrittenPack[],
    bound: boolean,
  ): ReadyImage {
    const format: BlockFormat = bound ? 4 : packs.some(({ id }) => ownerOf(id) !== undefined) ? 3 : 2;
    const bind = bound ? { origin: { sandbox_id: this.#label.sandboxId, parent: this.#label.parent } } : {};
    const text = Buffer.from(JSON.stringify(this.#manifest(format)));
    const table = this.#sealed(compress(encodeTable(entries)), TABLE_SEQUENCE, associatedWith(bind));
    const manifest = this.#sealed(compress(text), MANIFEST_SEQUENCE, associatedWith(bind));
    const { dataKey } = this.#options;
    const envelope: Envelope = {
      format,
      writer_id: this.#writerId,
      packs: packs.map(({ id, size_bytes }) => ({ id, size_bytes })),
      blocks: { size_bytes: inImage.byteLength },
      table: { size_bytes: table.byteLength, sha256: sha256Of(table), entries: entries.length },
      manifest: { size_bytes: manifest.byteLength, sha256: sha256Of(manifest) },
      encryption: dataKey === undefined ? null : { key_id: dataKey.id },
      ...bind,
    };
    const head = Buffer.concat([encodeHeaderStart(format), inImage, table, manifest]);
    const readable = Buffer.from(JSON.stringify(envelope));
    const sha256 = sha256Of(readable);
    const footer = {
      format,
      manifestOffset: head.byteLength,
      manifestBytes: readable.byteLength,
      manifestSha256: sha256,
    };
    const bytes = Buffer.concat([head, readable, encodeFooter(footer)]);
    const ownBytes = ownPacks.reduce((sum, pack) => sum + pack.size_bytes, 0);
    const sizeBytes = bytes.byteLength + storedInPacks(entries);
    return { bytes, sha256, sizeBytes, addedBytes: bytes.byteLength + ownBytes };
  }

  #sealed(bytes: Buffer, sequence: number, associated: string): Buffer {
    const { dataKey } = this.#options;
    if (dataKey === undefined) return bytes;
    return new BlockCipher(dataKey.bytes).seal(this.#writerId, sequence, bytes, associated);
  }

  #manifest(format: BlockFormat): BlockManifest {
    const { sandboxId, createdAt, parent } = this.#label;
    let firstBlock = 0;
    const members = this.#state.members.map(({ name, sizeBytes }) => {
      const blocks = Math.ceil(sizeBytes / BLOCK_BYTES);
      const member = { name, size_bytes: sizeBytes, first_block: firstBlock, blocks };
      firstBlock += blocks;
      return member;
    });
    const { kind, requirements } = this.#state;
    const described = { sandbox_id: sandboxId, kind, created_at: createdAt, parent };
    return { format, ...described, requirements: { ...requirements }, members };
  }
}

function blockCountOf({ members }: SnapshotPayload): number {
  return members.reduce((sum, { sizeBytes }) => sum + Math.ceil(sizeBytes / BLOCK_BYTES), 0);
}

function storedInPacks(entries: readonly BlockEntry[]): number {
  const seen = new Map<string, number>();
  for (const { pack, offset, storedBytes, codec } of entries) {
    if (pack !== IN_IMAGE && codec !== CODEC.zero) seen.set(`${pack} ${offset}`, storedBytes);
  }
  return seen.values().reduce((sum, bytes) => sum + bytes, 0);
}
