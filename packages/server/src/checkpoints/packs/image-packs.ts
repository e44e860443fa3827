import type { ObjectStore } from "../../store/store.ts";
import { readEnvelope } from "../block-image/open-block-image.ts";
import { isMissing } from "../image-errors.ts";
import { readFooter } from "../open-image.ts";

/** The ids of the packs that an image names, none in format 1; undefined when there is no such image. Needs no key. */
export async function packsOfImage(store: ObjectStore, key: string): Promise<readonly string[] | undefined> {
  try {
    const { sizeBytes, tail, footer } = await readFooter(store, key);
    if (footer.format === 1) return [];
    return (await readEnvelope(store, key, footer, { sizeBytes, tail })).packs.map(({ id }) => id);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
