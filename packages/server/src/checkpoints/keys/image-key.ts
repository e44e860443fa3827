import type { ObjectStore } from "../../store/store.ts";
import { readEnvelope } from "../block-image/open-block-image.ts";
import { readFooter } from "../open-image.ts";
import { SandboxerError } from "@sandboxer/protocol";

/** The id of the data key that an image is under; undefined: none, or there is no image that says so. Needs no key. */
export async function dataKeyOfImage(store: ObjectStore, imageKey: string): Promise<string | undefined> {
  try {
    return await readDataKeyOfImage(store, imageKey);
  } catch (error) {
    if (error instanceof SandboxerError && error.code === "image_damaged") return undefined;
    throw error;
  }
}

/** Undefined: it is not encrypted. `image_damaged`: it is not there, or does not say. */
export async function readDataKeyOfImage(store: ObjectStore, imageKey: string): Promise<string | undefined> {
  const { sizeBytes, tail, footer } = await readFooter(store, imageKey);
  if (footer.format === 1) return undefined;
  return (await readEnvelope(store, imageKey, footer, { sizeBytes, tail })).encryption?.key_id;
}
