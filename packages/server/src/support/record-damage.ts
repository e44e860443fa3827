import { SandboxerError } from "@sandboxer/protocol";

/** Errors that are permanent for one object. */
const OF_CONTENT: ReadonlySet<string> = new Set(["image_damaged", "not_supported", "bad_request"]);

/** Whether an error is about the store. Otherwise it is about one object, and all others can be read. */
export function isStoreFailure(error: unknown): boolean {
  return !(error instanceof SandboxerError) || !OF_CONTENT.has(error.code);
}

/** For reading one of many records, which may be damaged. */
export function unlessDamaged(error: unknown): "damaged" {
  if (isStoreFailure(error)) throw error;
  return "damaged";
}

/** For a record that may have been written by someone with access to the store only. */
export function recordNotSealed(object: string): SandboxerError {
  return new SandboxerError("image_damaged", `The stored record ${object} has no valid seal.`, {
    hint: "It was written without the servers' encryption key (docs/guides/encryption.md#refuse-records-that-somebody-else-wrote). If you trust the current contents of the store, seal them with `sandboxer keys rotate-encryption`.",
    details: { object },
  });
}

export const RECORD_DAMAGED_HINT =
  "Restore it from a backup (docs/guides/damaged-records.md). Everything else keeps working.";

/** For a record that cannot be read; `object` is its key, or its file. */
export function recordDamaged(object: string, why: string, cause?: unknown): SandboxerError {
  return new SandboxerError("image_damaged", `The stored record ${object} is damaged: ${why}`, {
    cause,
    hint: RECORD_DAMAGED_HINT,
    details: { object },
  });
}
