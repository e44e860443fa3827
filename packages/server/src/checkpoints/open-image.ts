import type { ObjectStore } from "../store/store.ts";
import type { Envelope } from "./block-image/envelope.ts";
import { openBlockImage, type OpenBlockImage, readEnvelope } from "./block-image/open-block-image.ts";
import type { DataKeys } from "./data-keys.ts";
import { imageDamaged, imageMissing, isMissing, nothingIfDamaged } from "./image-errors.ts";
import { decodeFooter, type Footer, FOOTER_BYTES, HEADER_START_BYTES } from "./image-format.ts";
import { openPlainImage, type OpenPlainImage } from "./plain-image.ts";
import { readRange } from "./read-range.ts";

/** Covers the footer and nearly every manifest, so that one request gets both. */
const TAIL_BYTES = 64 * 1024;

export type OpenImage = OpenPlainImage | OpenBlockImage;

/** Reads and checks the metadata of an image. `origin`: the sandbox that it must have been saved from, if known. */
export async function openImage(
  store: ObjectStore,
  key: string,
  dataKeys?: DataKeys,
  origin?: string,
): Promise<OpenImage> {
  const { sizeBytes, tail, footer } = await readFooter(store, key);
  if (footer.format === 1) return await openPlainImage(store, key, footer, { sizeBytes, tail });
  const known = { sizeBytes, tail, ...(dataKeys && { dataKeys }), ...(origin === undefined ? {} : { origin }) };
  return await openBlockImage(store, key, footer, known);
}

/** The position of the manifest or the envelope of an image. */
async function readFooter(
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

/** The metadata that is readable without a key; format 1 has no envelope. */
export async function readAnyEnvelope(
  store: ObjectStore,
  key: string,
): Promise<{ readonly sizeBytes: number; readonly footer: Footer; readonly envelope: Envelope | undefined }> {
  const { sizeBytes, tail, footer } = await readFooter(store, key);
  const envelope = footer.format === 1 ? undefined : await readEnvelope(store, key, footer, { sizeBytes, tail });
  return { sizeBytes, footer, envelope };
}

/** The ids of an image's packs; undefined if it is missing, `image_damaged` if they are unknown. */
export type PacksOfImage = (store: ObjectStore, imageKey: string) => Promise<readonly string[] | undefined>;

/** None in format 1. Needs no key. */
export const packsOfImage: PacksOfImage = async (store, key) => {
  try {
    return (await readAnyEnvelope(store, key)).envelope?.packs.map(({ id }) => id) ?? [];
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

/** The id of an image's data key; undefined: none, or the image is missing. Needs no key. */
export async function dataKeyOfImage(store: ObjectStore, key: string): Promise<string | undefined> {
  return await readDataKeyOfImage(store, key).catch(nothingIfDamaged);
}

/** Undefined: it is not encrypted. `image_damaged`: it is missing, or does not say. */
export async function readDataKeyOfImage(store: ObjectStore, key: string): Promise<string | undefined> {
  return (await readAnyEnvelope(store, key)).envelope?.encryption?.key_id;
}
