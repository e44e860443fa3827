import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { jsonOf } from "../../support/json.ts";

export const DATA_KEYS_FOLDER = "data-keys";

const blobName = z.string().regex(/^[0-9a-f]{16}\.[0-9a-f-]{36}$/);

/**
 * `data-keys/{id}.json`: the key that encrypts a data key, and its holders. The encrypted key itself is a blob beside
 * it and not in the cell, because stores keep older versions of cells: there a key would survive its removal.
 */
const dataKeySchema = z.looseObject({
  /** 2 if `wrapped` is present, which readers of 1 ignore. */
  format: z.union([z.literal(1), z.literal(2)]),
  id: z.uuid(),
  /** `removed`: it is being removed, and nobody may use it any more. */
  state: z.enum(["kept", "removed"]),
  held_by: z.enum(["server", "client"]),
  /** The name of the server's secret; the fingerprint of a client's key. */
  key: z.string(),
  /** The fingerprint of the key that it is encrypted with now. */
  fingerprint: z.string().regex(/^[0-9a-f]{16}$/),
  /** The blob with the key; absent: the one named by the fingerprint. No name is used twice. */
  wrapped: blobName.optional(),
  /**
   * Blobs that rotations are writing, each announced before it exists. Blobs that are neither here nor named may be
   * removed.
   */
  announced: z.array(blobName).optional(),
  /** `sandbox:{id}`, `snapshot:{id}`: the holders whose images may be under it. */
  holders: z.array(z.string()),
  /**
   * Holders for which a collection found no image under it. A holder that has written one removes itself before it
   * counts.
   */
  leaving: z.array(z.string()).optional(),
  created_at: z.string(),
  nonce: z.string(),
  history: z.array(z.string()),
});
export type StoredDataKey = z.infer<typeof dataKeySchema>;
export type NamedBlob = Pick<StoredDataKey, "id" | "fingerprint" | "wrapped">;

export function sandboxHolder(sandboxId: string): string {
  return `sandbox:${sandboxId}`;
}

export function snapshotHolder(snapshotId: string): string {
  return `snapshot:${snapshotId}`;
}

export function dataKeyCell(id: string): string {
  return `${DATA_KEYS_FOLDER}/${id}.json`;
}

/** The folder of a data key's blobs. */
export function wrappedFolder(id: string): string {
  return `${DATA_KEYS_FOLDER}/${id}`;
}

/** The data key, encrypted with the key of that fingerprint. */
export function wrappedKey({ id, fingerprint, wrapped }: NamedBlob): string {
  return `${wrappedFolder(id)}/${wrapped ?? fingerprint}.key`;
}

/** A name that no rotation has used or will use again. */
export function newBlobName(fingerprint: string): string {
  return `${fingerprint}.${randomUUID()}`;
}

export function isDataKeyId(id: string): boolean {
  return z.uuid().safeParse(id).success;
}

/** Undefined for a key that is not a data key's cell. */
export function dataKeyIdOf(key: string): string | undefined {
  const id = /^data-keys\/([^/]+)\.json$/.exec(key)?.[1];
  return id !== undefined && isDataKeyId(id) ? id : undefined;
}

export function decodeDataKey(id: string, body: Uint8Array): StoredDataKey {
  const parsed = dataKeySchema.safeParse(jsonOf(body));
  if (parsed.success && parsed.data.id === id) return parsed.data;
  throw new SandboxerError("image_damaged", `The record of the data key ${id} cannot be read.`, {
    hint: "Restore the file from a backup: data that is encrypted with this key cannot be read without it.",
    details: { data_key: id },
  });
}
