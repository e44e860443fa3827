import {
  encryptionSchema,
  maxLossSchema,
  SandboxerError,
  storedAffinitySchema,
  storedMessageSchema,
  storedRetentionSchema,
  storedSecondsSchema,
  storedSizeSchema,
  storedTextSchema,
  storedTimeSchema,
  storedWordsSchema,
} from "@sandboxer/protocol";
import { z } from "zod";
import { RECORD_DAMAGED_HINT } from "../support/record-damage.ts";

export const SNAPSHOTS_FOLDER = "snapshots";
export const SNAPSHOT_NAMES_FOLDER = "snapshot-names";

/** More changes of one record than can happen at the same time. */
export const HISTORY_LENGTH = 64;

const instanceId = z.string().regex(/^[A-Za-z0-9-]{0,64}$/);

/**
 * `snapshots/{id}/record.json`. It is written before the image, as `saving`, so that an image without a record is
 * garbage; and it becomes `ready` only after the image was read back.
 */
const storedSnapshotSchema = z.looseObject({
  format: z.literal(1),
  id: storedTextSchema,
  /** `saving`: being written by its publisher. `removing`: no new sandbox may use it. */
  state: z.enum(["saving", "ready", "damaged", "missing", "removing"]),
  /** The problem of a damaged or missing one. */
  problem: storedMessageSchema.nullable(),
  /** The server that saved it. */
  publisher: instanceId,
  /** The name that it was last given. It has it only while the name's own record says so. */
  name: storedTextSchema.nullable(),
  /** The server that is about to remove it; empty once that is decided: then any collection may. */
  removed_by: instanceId.optional(),
  reason: z.enum(["request", "fork", "named", "move", "promote"]),
  mode: z.enum(["full", "filesystem", "workspace", "metadata"]),
  kind: storedTextSchema,
  labels: storedWordsSchema,
  sandbox_id: storedTextSchema,
  sandbox_name: storedTextSchema.nullable(),
  /** The snapshot that the captured sandbox was created from. */
  parent: storedTextSchema.nullable(),
  created_at: storedTimeSchema,
  /** The image; null if there is none because the backend keeps the state itself. */
  image_sha256: storedTextSchema.nullable(),
  size_bytes: storedSizeSchema,
  /** The part that was not in the store before; absent in snapshots from before image format 2. */
  added_bytes: storedSizeSchema.optional(),
  /** The backend's requirements for loading it; the image has them too, if there is one. */
  requirements: z.record(z.string(), z.unknown()).nullable(),
  /** Whether there is a list of files beside the image. */
  has_files: z.boolean(),
  /** For people: where the backend keeps it, and so on. */
  details: storedWordsSchema,
  /** The settings of a sandbox that is created from it. */
  backend: storedTextSchema,
  profile: storedTextSchema.nullable(),
  spec: z.record(z.string(), z.unknown()),
  /** The key of the captured sandbox, and the hash of its spec. */
  key: storedTextSchema.nullable().default(null),
  spec_hash: storedTextSchema.nullable().default(null),
  flags: z.looseObject({
    enable_checkpoint: z.boolean(),
    enable_idle_timeout_auto_checkpoint: z.boolean(),
    enable_sandbox_handoff: z.boolean(),
    on_disconnect: z.enum(["keep", "checkpoint"]),
  }),
  idle_timeout: storedSecondsSchema,
  /** The max_loss of the captured sandbox; absent in older records. */
  max_loss: maxLossSchema.nullable().optional().catch(undefined),
  /** The retention of the captured sandbox; absent in older records. */
  retention: storedRetentionSchema.optional(),
  /** The servers that the captured sandbox may run on; absent, null, or unreadable: all. */
  affinity: storedAffinitySchema.nullable().optional().catch(undefined),
  /** The encryption of its image and its file list; absent or null: the server's default. */
  encryption: encryptionSchema.nullable().optional(),
  /** Whether it is kept until it is unpinned; absent: it is not pinned. */
  pinned: z.boolean().optional(),
  /** The last test restore with its engine, or its failure; absent or null: not the result. */
  proven: z.looseObject({ at: storedTimeSchema, engine: storedTextSchema }).nullable().optional(),
  unproven: z.looseObject({ at: storedTimeSchema, reason: storedMessageSchema }).nullable().optional(),
  nonce: storedTextSchema,
  /** The nonces of the versions before, newest first. */
  history: z.array(z.string()),
});
export type StoredSnapshot = z.infer<typeof storedSnapshotSchema>;

/** `snapshot-names/{name}.json`: which snapshot has the name now. */
const storedNameSchema = z.looseObject({
  format: z.literal(1),
  name: z.string(),
  snapshot_id: z.string().nullable(),
  /** The snapshots that had it before, newest first. */
  past: z.array(z.string()),
  /** Snapshots that were removed before they got the name, newest first: none of them may get it. */
  collected: z.array(z.string()).optional(),
  nonce: z.string(),
  history: z.array(z.string()),
});
export type StoredName = z.infer<typeof storedNameSchema>;

/** Common to both kinds of records: lets a writer whose answer was lost find out whether it was applied. */
export type Nonced = Pick<StoredSnapshot, "nonce" | "history">;

export function parseSnapshot(value: unknown, id: string): StoredSnapshot {
  const parsed = storedSnapshotSchema.safeParse(value);
  if (parsed.success && parsed.data.id === id) return parsed.data;
  throw unreadable(`the snapshot ${id}`, parsed.error);
}

export function decodeSnapshot(id: string, body: Uint8Array): StoredSnapshot {
  return parseSnapshot(parseJson(`the snapshot ${id}`, body), id);
}

export function decodeName(name: string, body: Uint8Array): StoredName {
  const parsed = storedNameSchema.safeParse(parseJson(`the snapshot name "${name}"`, body));
  if (parsed.success) return parsed.data;
  throw unreadable(`the snapshot name "${name}"`, parsed.error);
}

export function encodeCell(record: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(record, undefined, 2)}\n`);
}

/** The version of a record that comes after another one. */
export function successor<T extends Nonced>(present: Nonced | undefined, next: T, nonce: string): T {
  const history = present === undefined ? [] : [present.nonce, ...present.history].slice(0, HISTORY_LENGTH);
  return { ...next, nonce, history };
}

export function isSnapshotName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text);
}

export function isSnapshotId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}

/** Names look different from ids, so that a request is never ambiguous. */
export function checkSnapshotName(name: string): void {
  if (isSnapshotName(name) && !isSnapshotId(name)) return;
  throw new SandboxerError("bad_request", `"${name}" is not a valid snapshot name.`, {
    hint: "Use up to 128 letters, digits, dots, dashes and underscores, beginning with a letter or a digit; not a UUID.",
  });
}

export function snapshotFolder(id: string): string {
  return `${SNAPSHOTS_FOLDER}/${id}`;
}

export function recordKey(id: string): string {
  return `${SNAPSHOTS_FOLDER}/${id}/record.json`;
}

export function imageKey(id: string): string {
  return `${SNAPSHOTS_FOLDER}/${id}/image.img`;
}

export function filesKey(id: string): string {
  return `${SNAPSHOTS_FOLDER}/${id}/files.ndjson.zst`;
}

export function nameKey(name: string): string {
  return `${SNAPSHOT_NAMES_FOLDER}/${name}.json`;
}

function parseJson(what: string, body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch (error) {
    throw unreadable(what, error);
  }
}

function unreadable(what: string, cause: unknown): SandboxerError {
  return new SandboxerError("image_damaged", `The record of ${what} cannot be read.`, {
    cause,
    hint: RECORD_DAMAGED_HINT,
  });
}
