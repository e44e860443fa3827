import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";

export const DATA_KEYS_FOLDER = "data-keys";

/**
 * `data-keys/{id}.json`: which key a data key is encrypted with, and who needs it. The encrypted key itself is a blob
 * beside it and not in the cell, because stores keep older versions of cells: there a key would outlive its removal.
 */
const dataKeySchema = z.looseObject({
  format: z.literal(1),
  id: z.uuid(),
  /** `removed`: it is going, and nobody may need it any more. */
  state: z.enum(["kept", "removed"]),
  held_by: z.enum(["server", "client"]),
  /** The name of the server's secret; the fingerprint of a client's key. */
  key: z.string(),
  /** Of the key that it is encrypted with now. */
  fingerprint: z.string().regex(/^[0-9a-f]{16}$/),
  /** `sandbox:{id}`, `snapshot:{id}`: whose images may be under it. */
  holders: z.array(z.string()),
  created_at: z.string(),
  nonce: z.string(),
  history: z.array(z.string()),
});
export type StoredDataKey = z.infer<typeof dataKeySchema>;

export function sandboxHolder(sandboxId: string): string {
  return `sandbox:${sandboxId}`;
}

export function snapshotHolder(snapshotId: string): string {
  return `snapshot:${snapshotId}`;
}

export function dataKeyCell(id: string): string {
  return `${DATA_KEYS_FOLDER}/${id}.json`;
}

/** The folder of what a data key's cell does not hold. */
export function wrappedFolder(id: string): string {
  return `${DATA_KEYS_FOLDER}/${id}`;
}

/** The data key, encrypted with the key of that fingerprint. */
export function wrappedKey(id: string, fingerprint: string): string {
  return `${DATA_KEYS_FOLDER}/${id}/${fingerprint}.key`;
}

export function isDataKeyId(id: string): boolean {
  return z.uuid().safeParse(id).success;
}

/** Undefined for a key that is no data key's cell. */
export function dataKeyIdOf(key: string): string | undefined {
  const id = /^data-keys\/([^/]+)\.json$/.exec(key)?.[1];
  return id !== undefined && isDataKeyId(id) ? id : undefined;
}

export function decodeDataKey(id: string, body: Uint8Array): StoredDataKey {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    value = undefined;
  }
  const parsed = dataKeySchema.safeParse(value);
  if (parsed.success && parsed.data.id === id) return parsed.data;
  throw new SandboxerError("image_damaged", `The record of the data key ${id} cannot be read.`, {
    hint: "Put the file back from a backup: what is encrypted with it cannot be read without it.",
    details: { data_key: id },
  });
}
