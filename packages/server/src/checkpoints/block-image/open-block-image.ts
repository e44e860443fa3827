import type { ObjectStore } from "../../store/store.ts";
import { BlockCipher } from "../blocks/block-cipher.ts";
import { BLOCK_BYTES, ENTRY_BYTES, faultOfEntry, LARGEST_DEPTH, readEntry } from "../blocks/block-table.ts";
import { decompress, decompressInto } from "../blocks/compression.ts";
import type { DataKeys } from "../data-keys.ts";
import { imageDamaged } from "../image-errors.ts";
import { encodeHeaderStart, type Footer, FOOTER_BYTES, sha256Of } from "../image-format.ts";
import { keyUnavailable } from "../keys/key-errors.ts";
import { checkNamesIn } from "../member-names.ts";
import { readRange } from "../read-range.ts";
import {
  associatedWith,
  BLOCK_IMAGE_HEADER_BYTES,
  type BlockFormat,
  type BlockManifest,
  blockManifestSchema,
  type Envelope,
  envelopeSchema,
  LARGEST_MANIFEST_BYTES,
  MANIFEST_SEQUENCE,
  TABLE_SEQUENCE,
} from "./envelope.ts";
import { inSlices } from "../../support/in-slices.ts";
import { jsonOf } from "../../support/json.ts";

/** A block may refer to two others, and each of these to two, up to the maximum depth. */
const ENTRIES_FOR_A_BLOCK = 2 ** (LARGEST_DEPTH + 1) - 1;

/** An image of format 2 or 3 whose envelope and manifest were read and verified. */
export interface OpenBlockImage {
  readonly format: BlockFormat;
  readonly key: string;
  /** The size of the image's own object. */
  readonly sizeBytes: number;
  /** The digest of the envelope, which covers everything else. */
  readonly manifestSha256: string;
  readonly manifest: BlockManifest;
  readonly envelope: Envelope;
  readonly dataKey: Uint8Array | undefined;
}

/** The data for reading its blocks. */
export interface BlockContents {
  /** In memory that threads can share. */
  readonly table: Buffer;
  readonly inImage: Uint8Array;
}

/** `tail` are the last bytes of the image, as many as were read; `origin` the sandbox that it must be from, if known. */
export async function openBlockImage(
  store: ObjectStore,
  key: string,
  footer: Footer,
  { sizeBytes, tail, dataKeys, origin }: { sizeBytes: number; tail: Buffer; dataKeys?: DataKeys; origin?: string },
): Promise<OpenBlockImage> {
  const envelope = await readEnvelope(store, key, footer, { sizeBytes, tail });
  const dataKey = envelope.encryption === null ? undefined : await keyOf(key, envelope.encryption.key_id, dataKeys);
  const { start, end } = placesOf(envelope).manifest;
  const stored = await readPlace(store, key, { start, end }, { sizeBytes, tail });
  if (sha256Of(stored) !== envelope.manifest.sha256) throw imageDamaged(key, "the manifest's digest differs");
  const text = unsealed(key, stored, envelope, dataKey, MANIFEST_SEQUENCE, origin);
  const manifest = parseManifest(key, decompress(text, LARGEST_MANIFEST_BYTES));
  checkMembers(key, manifest, envelope);
  return {
    format: envelope.format,
    key,
    sizeBytes,
    manifestSha256: footer.manifestSha256,
    manifest,
    envelope,
    dataKey,
  };
}

/** The envelope alone, which needs no key. */
export async function readEnvelope(
  store: ObjectStore,
  key: string,
  footer: Footer,
  known: { readonly sizeBytes: number; readonly tail: Buffer },
): Promise<Envelope> {
  const start = footer.manifestOffset;
  const bytes = await readPlace(store, key, { start, end: start + footer.manifestBytes }, known);
  if (sha256Of(bytes) !== footer.manifestSha256) throw imageDamaged(key, "the envelope's digest differs");
  const envelope = parseEnvelope(key, bytes);
  if (placesOf(envelope).manifest.end !== start)
    throw imageDamaged(key, "its parts do not end where the envelope begins");
  return envelope;
}

export async function readBlockContents(store: ObjectStore, image: OpenBlockImage): Promise<BlockContents> {
  const { key, envelope, dataKey } = image;
  const places = placesOf(envelope);
  const whole = await readRange(store, key, 0, places.table.end);
  if (!whole.subarray(0, BLOCK_IMAGE_HEADER_BYTES).equals(encodeHeaderStart(envelope.format))) {
    throw imageDamaged(key, "bad magic at its start");
  }
  const bytes = whole.subarray(BLOCK_IMAGE_HEADER_BYTES);
  const stored = bytes.subarray(envelope.blocks.size_bytes);
  if (sha256Of(stored) !== envelope.table.sha256) throw imageDamaged(key, "the table's digest differs");
  const sizeBytes = envelope.table.entries * ENTRY_BYTES;
  const table = Buffer.from(new SharedArrayBuffer(sizeBytes));
  if (!(await decompressInto(table, unsealed(key, stored, envelope, dataKey, TABLE_SEQUENCE))))
    throw imageDamaged(key, "the table is not as long as it should be");
  const bounds = { packCount: envelope.packs.length, inImageBytes: envelope.blocks.size_bytes };
  await inSlices(envelope.table.entries, (index) => {
    const fault = faultOfEntry(table, index, bounds);
    if (fault !== undefined) throw imageDamaged(key, `block ${index}: ${fault}`);
  });
  await checkSizes(image, table);
  return { table, inImage: bytes.subarray(0, envelope.blocks.size_bytes) };
}

/** Every block of a member has full size except the last. */
async function checkSizes({ key, manifest }: OpenBlockImage, table: Buffer): Promise<void> {
  for (const { name, size_bytes: sizeBytes, first_block: firstBlock, blocks } of manifest.members) {
    await inSlices(blocks, (block) => {
      const wanted = Math.min(BLOCK_BYTES, sizeBytes - block * BLOCK_BYTES);
      if (readEntry(table, firstBlock + block).rawBytes === wanted) return;
      throw imageDamaged(key, `block ${block} is not as long as it should be`, name);
    });
  }
}

interface Place {
  readonly start: number;
  readonly end: number;
}

/** The parts are contiguous. */
function placesOf({ blocks, table, manifest }: Envelope): Readonly<Record<"blocks" | "table" | "manifest", Place>> {
  const tableStart = BLOCK_IMAGE_HEADER_BYTES + blocks.size_bytes;
  const manifestStart = tableStart + table.size_bytes;
  return {
    blocks: { start: BLOCK_IMAGE_HEADER_BYTES, end: tableStart },
    table: { start: tableStart, end: manifestStart },
    manifest: { start: manifestStart, end: manifestStart + manifest.size_bytes },
  };
}

async function readPlace(
  store: ObjectStore,
  key: string,
  { start, end }: Place,
  { sizeBytes, tail }: { readonly sizeBytes: number; readonly tail: Buffer },
): Promise<Buffer> {
  if (end < start || end > sizeBytes - FOOTER_BYTES) throw imageDamaged(key, "the footer does not fit the file");
  const inTail = start - (sizeBytes - tail.byteLength);
  return inTail >= 0 ? tail.subarray(inTail, inTail + end - start) : await readRange(store, key, start, end);
}

async function keyOf(key: string, keyId: string, dataKeys: DataKeys | undefined): Promise<Uint8Array> {
  if (dataKeys === undefined)
    throw keyUnavailable(`The image ${key} is encrypted, and this server cannot decrypt its key.`);
  return await dataKeys.open(keyId);
}

function unsealed(
  key: string,
  stored: Buffer,
  envelope: Envelope,
  dataKey: Uint8Array | undefined,
  sequence: number,
  sandboxId = envelope.origin?.sandbox_id,
): Buffer {
  if (dataKey === undefined) return stored;
  const associated = associatedWith(envelope, sandboxId);
  const opened = new BlockCipher(dataKey).open(envelope.writer_id, sequence, stored, associated);
  if (opened !== undefined) return opened;
  const { sandbox_id: savedFrom = sandboxId } = envelope.origin ?? {};
  if (savedFrom === sandboxId) throw imageDamaged(key, "it does not decrypt with its key");
  throw imageDamaged(key, `it does not decrypt: it was saved from the sandbox ${savedFrom}, not from ${sandboxId}`);
}

function parseEnvelope(key: string, bytes: Buffer): Envelope {
  const parsed = envelopeSchema.safeParse(jsonOf(bytes));
  if (!parsed.success) throw imageDamaged(key, "the envelope lacks what format 2 requires");
  return parsed.data;
}

function parseManifest(key: string, bytes: Buffer | undefined): BlockManifest {
  const parsed = blockManifestSchema.safeParse(bytes === undefined ? undefined : jsonOf(bytes));
  if (!parsed.success) throw imageDamaged(key, "the manifest lacks what format 2 requires");
  return parsed.data;
}

/** The members' blocks are the first in the table, in order, without gaps. */
function checkMembers(key: string, { members }: BlockManifest, { table }: Envelope): void {
  checkNamesIn(key, members);
  let block = 0;
  for (const member of members) {
    if (member.first_block !== block || member.blocks !== Math.ceil(member.size_bytes / BLOCK_BYTES)) {
      throw imageDamaged(key, "its blocks are not those that follow", member.name);
    }
    block += member.blocks;
  }
  if (block > table.entries) throw imageDamaged(key, "the table ends before its members do");
  if (table.entries > block * ENTRIES_FOR_A_BLOCK) throw imageDamaged(key, "the table has more than its members need");
}
