import type { ObjectStore } from "../store/store.ts";
import { openBlockImage, type OpenBlockImage } from "./block-image/open-block-image.ts";
import type { DataKeys } from "./data-keys.ts";
import { imageDamaged, imageMissing } from "./image-errors.ts";
import { decodeFooter, type Footer, FOOTER_BYTES, HEADER_START_BYTES } from "./image-format.ts";
import { openPlainImage, type OpenPlainImage } from "./plain-image.ts";
import { readRange } from "./read-range.ts";

/** Holds the footer and nearly every manifest, so that one request gets both. */
const TAIL_BYTES = 64 * 1024;

export type OpenImage = OpenPlainImage | OpenBlockImage;

/** Reads and checks what an image says of itself. */
export async function openImage(store: ObjectStore, key: string, dataKeys?: DataKeys): Promise<OpenImage> {
  const { sizeBytes, tail, footer } = await readFooter(store, key);
  if (footer.format === 2) return await openBlockImage(store, key, footer, { sizeBytes, tail, dataKeys });
  return await openPlainImage(store, key, footer, { sizeBytes, tail });
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
