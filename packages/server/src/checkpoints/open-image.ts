import type { ObjectStore } from "../store/store.ts";
import { openBlockImage, type OpenBlockImage } from "./block-image/open-block-image.ts";
import type { DataKeys } from "./data-keys.ts";
import { imageDamaged, imageMissing } from "./image-errors.ts";
import {
  ALIGNMENT_BYTES,
  decodeFooter,
  type Footer,
  FOOTER_BYTES,
  HEADER_START_BYTES,
  type Manifest,
  manifestSchema,
  paddingAfter,
  sha256Of,
} from "./image-format.ts";
import { isMemberName } from "./member-names.ts";
import { readRange } from "./read-range.ts";

/** Holds the footer and nearly every manifest, so that one request gets both. */
const TAIL_BYTES = 64 * 1024;

/** An image of format 1 whose manifest was read and holds; its members were not looked at. */
export interface OpenPlainImage {
  readonly format: 1;
  readonly key: string;
  readonly sizeBytes: number;
  readonly manifestOffset: number;
  readonly manifestSha256: string;
  readonly manifest: Manifest;
}

export type OpenImage = OpenPlainImage | OpenBlockImage;

/** Reads and checks what an image says of itself. */
export async function openImage(store: ObjectStore, key: string, dataKeys?: DataKeys): Promise<OpenImage> {
  const { sizeBytes, tail, footer } = await readFooter(store, key);
  if (footer.format === 2) return await openBlockImage(store, key, footer, { sizeBytes, tail, dataKeys });
  const manifestBytes = await readManifest(store, key, tail, sizeBytes, footer);
  if (sha256Of(manifestBytes) !== footer.manifestSha256) throw imageDamaged(key, "the manifest's digest differs");
  const manifest = parseManifest(key, manifestBytes);
  checkLayout(key, manifest, footer);
  const { manifestOffset, manifestSha256 } = footer;
  return { format: 1, key, sizeBytes, manifestOffset, manifestSha256, manifest };
}

/** Where the manifest or the envelope of an image is. */
export async function readFooter(
  store: ObjectStore,
  key: string,
): Promise<{ readonly sizeBytes: number; readonly tail: Buffer; readonly footer: Footer }> {
  const sizeBytes = (await store.stat(key))?.sizeBytes;
  if (sizeBytes === undefined) throw imageMissing(key);
  if (sizeBytes < HEADER_START_BYTES + FOOTER_BYTES) throw imageDamaged(key, `truncated at byte ${sizeBytes}`);
  const tail = await readRange(store, key, Math.max(0, sizeBytes - TAIL_BYTES), sizeBytes);
  const footer = decodeFooter(tail.subarray(-FOOTER_BYTES), sizeBytes);
  if ("problem" in footer) throw imageDamaged(key, footer.problem);
  return { sizeBytes, tail, footer };
}

async function readManifest(
  store: ObjectStore,
  key: string,
  tail: Buffer,
  sizeBytes: number,
  footer: Footer,
): Promise<Buffer> {
  const { manifestOffset, manifestBytes } = footer;
  const inTail = manifestOffset - (sizeBytes - tail.byteLength);
  if (inTail >= 0) return tail.subarray(inTail, inTail + manifestBytes);
  return await readRange(store, key, manifestOffset, manifestOffset + manifestBytes);
}

function parseManifest(key: string, bytes: Buffer): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw imageDamaged(key, "the manifest is not JSON");
  }
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) throw imageDamaged(key, "the manifest lacks what format 1 requires");
  return parsed.data;
}

/** Members lie back to back from the header to the manifest: there is one place for each, and no room between. */
function checkLayout(key: string, manifest: Manifest, footer: Footer): void {
  let offset = ALIGNMENT_BYTES;
  const seen = new Set<string>();
  for (const member of manifest.members) {
    if (!isMemberName(member.name)) throw imageDamaged(key, "the name leads out of its folder", member.name);
    if (seen.has(member.name)) throw imageDamaged(key, "it is there twice", member.name);
    seen.add(member.name);
    if (member.offset !== offset) throw imageDamaged(key, "it is not where its predecessor ends", member.name);
    offset += member.size_bytes + paddingAfter(member.size_bytes);
  }
  if (offset !== footer.manifestOffset) throw imageDamaged(key, "the members do not end where the manifest begins");
}
