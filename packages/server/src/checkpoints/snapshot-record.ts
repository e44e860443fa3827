import {
  encryptionSchema,
  maxLossSchema,
  SandboxerError,
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

/** More changes of one record than can be under way at the same time. */
export const HISTORY_LENGTH = 64;

const instanceId = z.string().regex(/^[A-Za-z0-9-]{0,64}$/);

/**
 * `snapshots/{id}/record.json`. It is there before the image, as `saving`, so that an image without a record is nobody's;
 * and it is `ready` only after the image was read back.
 */
const storedSnapshotSchema = z.looseObject({
  format: z.literal(1),
  id: storedTextSchema,
  /** `saving`: on its way, by its publisher. `removing`: nobody may begin with it any more. */
  state: z.enum(["saving", "ready", "damaged", "missing", "removing"]),
  /** What is wrong with one that is damaged or missing. */
  problem: storedMessageSchema.nullable(),
  /** The server that saved it. */
  publisher: instanceId,
  /** The name that it was given last. It has it only while the name's own record says so. */
  name: storedTextSchema.nullable(),
  /** Who is about to remove it; empty once that is decided: then any collection may. */
  removed_by: instanceId.optional(),
  reason: z.enum(["request", "fork", "named", "move"]),
  mode: z.enum(["full", "filesystem", "workspace", "metadata"]),
  kind: storedTextSchema,
  labels: storedWordsSchema,
  sandbox_id: storedTextSchema,
  sandbox_name: storedTextSchema.nullable(),
  /** The snapshot that the captured sandbox had begun with. */
  parent: storedTextSchema.nullable(),
  created_at: storedTimeSchema,
  /** Of the image; null where there is none, because the backend keeps the state itself. */
  image_sha256: storedTextSchema.nullable(),
  size_bytes: storedSizeSchema,
  /** What of that was not in the store before; absent in snapshots of before image format 2. */
  added_bytes: storedSizeSchema.optional(),
  /** What the backend needs to load it, as the image says too where there is one. */
  requirements: z.record(z.string(), z.unknown()).nullable(),
  /** Whether there is a list of files beside the image. */
  has_files: z.boolean(),
  /** For people: where the backend keeps it, and so on. */
  details: storedWordsSchema,
  /** What a sandbox that is made of it is like. */
  backend: storedTextSchema,
  profile: storedTextSchema.nullable(),
  spec: z.record(z.string(), z.unknown()),
  /** By what the captured sandbox was asked for, and the hash of what it was made of. */
  key: storedTextSchema.nullable().default(null),
  spec_hash: storedTextSchema.nullable().default(null),
  flags: z.looseObject({
    enable_checkpoint: z.boolean(),
    enable_idle_timeout_auto_checkpoint: z.boolean(),
    enable_sandbox_handoff: z.boolean(),
    on_disconnect: z.enum(["keep", "checkpoint"]),
  }),
  idle_timeout: storedSecondsSchema,
  /** What was promised of the captured sandbox; absent in older records. */
  max_loss: maxLossSchema.nullable().optional().catch(undefined),
  /** Which saved states of the captured sandbox stay; absent in older records. */
  retention: storedRetentionSchema.optional(),
  /** What its image and its list of files are encrypted with; absent or null: as its server said. */
  encryption: encryptionSchema.nullable().optional(),
  /** Whether it stays until somebody unpins it; absent: it is not pinned. */
  pinned: z.boolean().optional(),
  /** The last test restore, which engine did it, or why it could not; absent or null: that is not how it went. */
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

/** What both sorts of records have: by it a writer whose answer was lost finds out that it was heard. */
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

/** Names look different from ids, so that what is asked for is never something else. */
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
