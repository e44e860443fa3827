import { SandboxerError } from "@sandboxer/protocol";
import type { DataKey, DataKeys, KeyChoice } from "../data-keys.ts";
import { ImageMayBeThereError } from "../image-errors.ts";
import { keyUnavailable } from "./key-errors.ts";
import type { StoredDataKeys } from "./stored-data-keys.ts";

export interface KeyedWrite {
  readonly choice: KeyChoice;
  /** The holder of the image. */
  readonly holder: string;
  /** The image that it is written against. */
  readonly base: string | undefined;
}

/**
 * Runs a write under its data key, or under none. A key that was created for it is removed on failure, unless an image
 * under it may exist.
 */
export async function withDataKey<Result>(
  keys: StoredDataKeys,
  { choice, holder, base }: KeyedWrite,
  write: (dataKey: DataKey | undefined) => Promise<Result>,
): Promise<Result> {
  const dataKey = await keys.forWriting(choice, holder, base);
  try {
    const written = await write(dataKey);
    if (dataKey === undefined || (await keys.confirm(dataKey.id, holder))) return written;
    throw new SandboxerError("checkpoint_failed", "Garbage collection removed the data key during the save.", {
      hint: "Earlier checkpoints are intact. Save again.",
      details: { data_key: dataKey.id },
    });
  } catch (error) {
    if (error instanceof ImageMayBeThereError) throw error.cause;
    // Garbage collection finds leftovers once the holder is removed.
    if (dataKey?.fresh === true) await keys.release(dataKey.id, holder).catch(() => {});
    throw error;
  }
}

/** Opens only this key: data under another key is not used as a base, nor revealed by similarity. */
export function onlyKey(dataKey: DataKey | undefined): DataKeys {
  return {
    open: async (keyId) => {
      if (dataKey?.id === keyId) return dataKey.bytes;
      throw keyUnavailable(`The written data is not encrypted with the data key ${keyId}.`, { data_key: keyId });
    },
  };
}
