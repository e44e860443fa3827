import { type ObjectStore, readWhole } from "../store/store.ts";
import { imageDamaged, imageMissing } from "./image-errors.ts";

/** Reads a part of an image completely. */
export async function readRange(store: ObjectStore, key: string, start: number, end: number): Promise<Buffer> {
  const bytes = await readWhole(store, key, { start, end });
  if (bytes === undefined) throw imageMissing(key);
  if (bytes.byteLength !== end - start) throw imageDamaged(key, `truncated at byte ${start + bytes.byteLength}`);
  return bytes;
}
