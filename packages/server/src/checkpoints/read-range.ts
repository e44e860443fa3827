import { ObjectNotFoundError, type ObjectStore } from "../store/store.ts";
import { imageDamaged, imageMissing } from "./image-errors.ts";

/** A part of an image, all of it. */
export async function readRange(store: ObjectStore, key: string, start: number, end: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of store.read(key, { start, end })) chunks.push(chunk);
  } catch (error) {
    if (error instanceof ObjectNotFoundError) throw imageMissing(key);
    throw error;
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.byteLength !== end - start) throw imageDamaged(key, `truncated at byte ${start + bytes.byteLength}`);
  return bytes;
}
