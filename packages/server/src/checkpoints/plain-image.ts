import { createHash } from "node:crypto";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { SnapshotPayload } from "../backends/backend.ts";
import type { ObjectStore } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import { imageDamaged } from "./image-errors.ts";
import { ALIGNMENT_BYTES, encodeHeaderStart, type Footer, IMAGE_MAGIC, sha256Of, stateFields } from "./image-format.ts";
import { checkNamesIn } from "./member-names.ts";
import { readRange } from "./read-range.ts";
import { jsonOf } from "../support/json.ts";

/**
 * Image format 1: one file that is one saved state. It is read, and written no more.
 * COMPATIBILITY.md describes it byte by byte.
 *
 *   header   4096 bytes: magic, format, zeros
 *   members  back to back, each padded with zeros to a multiple of 4096
 *   manifest JSON, right after the last member's padding
 *   footer   64 bytes: where the manifest is, its SHA-256, format, zeros, magic
 */
const PLAIN_FORMAT = 1;

const memberSchema = z.looseObject({
  name: z.string(),
  size_bytes: z.number().int().nonnegative(),
  offset: z.number().int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const manifestSchema = z.looseObject({
  format: z.literal(PLAIN_FORMAT),
  ...stateFields,
  members: z.array(memberSchema),
});

type Manifest = z.infer<typeof manifestSchema>;

/** An image whose manifest was read and verified; its members were not checked. */
export interface OpenPlainImage {
  readonly format: typeof PLAIN_FORMAT;
  readonly key: string;
  readonly sizeBytes: number;
  readonly manifestOffset: number;
  readonly manifestSha256: string;
  readonly manifest: Manifest;
}

/** Bytes of a member, valid until the next ones are requested. */
interface Piece {
  readonly member: string;
  readonly bytes: Uint8Array;
}

export async function openPlainImage(
  store: ObjectStore,
  key: string,
  { manifestOffset, manifestBytes, manifestSha256 }: Footer,
  { sizeBytes, tail }: { readonly sizeBytes: number; readonly tail: Buffer },
): Promise<OpenPlainImage> {
  const inTail = manifestOffset - (sizeBytes - tail.byteLength);
  const bytes =
    inTail >= 0
      ? tail.subarray(inTail, inTail + manifestBytes)
      : await readRange(store, key, manifestOffset, manifestOffset + manifestBytes);
  if (sha256Of(bytes) !== manifestSha256) throw imageDamaged(key, "the manifest's digest differs");
  const manifest = parseManifest(key, bytes);
  checkLayout(key, manifest, manifestOffset);
  return { format: PLAIN_FORMAT, key, sizeBytes, manifestOffset, manifestSha256, manifest };
}

/** Reads every byte of an image and checks each digest; throws `image_damaged` with the first error. */
export async function* readPlainImage(
  store: ObjectStore,
  { key, manifest, manifestOffset }: OpenPlainImage,
  signal: AbortSignal | undefined,
): AsyncGenerator<Piece> {
  const range = { start: 0, end: manifestOffset, reuseMemory: true, ...(signal === undefined ? {} : { signal }) };
  const portions = new Portions(key, store.read(key, range));
  try {
    checkHeader(key, await collect(portions.take(ALIGNMENT_BYTES)));
    for (const { name, size_bytes: sizeBytes, sha256 } of manifest.members) {
      const hash = createHash("sha256");
      for await (const bytes of portions.take(sizeBytes, name)) {
        hash.update(bytes);
        yield { member: name, bytes };
      }
      if (hash.digest("hex") !== sha256) throw imageDamaged(key, "its digest differs", name);
      const padding = await collect(portions.take(paddingAfter(sizeBytes), name));
      if (padding.some((byte) => byte !== 0)) throw imageDamaged(key, "the bytes after it are not zero", name);
    }
  } finally {
    await portions.close();
  }
}

/** Reads an image only to check its digests. */
export async function verifyPlainImage(store: ObjectStore, image: OpenPlainImage, options: CallOptions): Promise<void> {
  const report = reporterOf(image, "verifying", options);
  for await (const { bytes } of readPlainImage(store, image, options.signal)) report(bytes);
}

/**
 * Extracts every member into a folder, checking each digest while writing. If it throws, the contents of the folder
 * must not be used. Nothing is synced: the image stays, and can be extracted again.
 */
export async function unpackPlainImage(
  store: ObjectStore,
  image: OpenPlainImage,
  into: string,
  options: CallOptions,
): Promise<SnapshotPayload> {
  const { kind, requirements, members: described } = image.manifest;
  const members = described.map(({ name, size_bytes: sizeBytes }) => ({ name, path: join(into, name), sizeBytes }));
  for (const { path } of members) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "", { flag: "wx", mode: 0o600 });
  }
  const report = reporterOf(image, "unpacking", options);
  for await (const { member, bytes } of readPlainImage(store, image, options.signal)) {
    await appendFile(join(into, member), bytes);
    report(bytes);
  }
  // The backend refuses a kind of a later release.
  return { kind, members, requirements };
}

/** Bytes of an image from its start, in the portions that the caller requests. */
class Portions {
  readonly #key: string;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #position = 0;

  constructor(key: string, chunks: AsyncIterable<Uint8Array>) {
    this.#key = key;
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next `sizeBytes` bytes, in pieces. A piece is valid until the next one is requested. */
  async *take(sizeBytes: number, member?: string): AsyncGenerator<Uint8Array> {
    for (let left = sizeBytes; left > 0;) {
      if (this.#rest.byteLength === 0) {
        const next = await this.#chunks.next();
        if (next.done === true) throw imageDamaged(this.#key, `truncated at byte ${this.#position}`, member);
        this.#rest = next.value;
      }
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.byteLength);
      this.#position += piece.byteLength;
      left -= piece.byteLength;
      yield piece;
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const collected: Uint8Array[] = [];
  for await (const piece of pieces) collected.push(Buffer.from(piece));
  return Buffer.concat(collected);
}

function reporterOf({ manifest }: OpenPlainImage, phase: string, { onProgress }: CallOptions) {
  const totalBytes = manifest.members.reduce((sum, member) => sum + member.size_bytes, 0);
  let doneBytes = 0;
  return ({ byteLength }: Uint8Array): void => {
    doneBytes += byteLength;
    onProgress?.({ phase, doneBytes, totalBytes });
  };
}

function parseManifest(key: string, bytes: Buffer): Manifest {
  const value = jsonOf(bytes);
  if (value === undefined) throw imageDamaged(key, "the manifest is not JSON");
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) throw imageDamaged(key, "the manifest lacks what format 1 requires");
  return parsed.data;
}

/** Members are contiguous from the header to the manifest: there is one position for each, without gaps. */
function checkLayout(key: string, { members }: Manifest, manifestOffset: number): void {
  checkNamesIn(key, members);
  let offset = ALIGNMENT_BYTES;
  for (const member of members) {
    if (member.offset !== offset) throw imageDamaged(key, "it is not where its predecessor ends", member.name);
    offset += member.size_bytes + paddingAfter(member.size_bytes);
  }
  if (offset !== manifestOffset) throw imageDamaged(key, "the members do not end where the manifest begins");
}

function checkHeader(key: string, header: Buffer): void {
  if (!header.subarray(0, IMAGE_MAGIC.byteLength).equals(IMAGE_MAGIC))
    throw imageDamaged(key, "bad magic at its start");
  const format = header.readUInt32LE(8);
  if (format !== PLAIN_FORMAT) throw imageDamaged(key, `unknown format version ${format}`);
  if (!header.equals(Buffer.concat([encodeHeaderStart(PLAIN_FORMAT)], ALIGNMENT_BYTES)))
    throw imageDamaged(key, "its header is not empty where it must be");
}

function paddingAfter(sizeBytes: number): number {
  return (ALIGNMENT_BYTES - (sizeBytes % ALIGNMENT_BYTES)) % ALIGNMENT_BYTES;
}
