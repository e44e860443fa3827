import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";

export const SNAPSHOTS_FOLDER = "filesystem-snapshots";
export const SNAPSHOT_RECORD = "record.json";

/** More saves under one name than can be under way at the same time. */
export const SNAPSHOT_HISTORY_LENGTH = 64;

/** `filesystem-snapshots/{name}/record.json`: which image the name stands for now. */
const snapshotRecordSchema = z.looseObject({
  format: z.literal(1),
  name: z.string(),
  image: z.string().regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]*$/),
  sha256: z.string(),
  size_bytes: z.number().int().nonnegative(),
  kind: z.string(),
  sandbox_id: z.string(),
  created_at: z.string(),
  /** The images that the name stood for before, newest first; gone by now. */
  history: z.array(z.string()),
  /** Images that were removed because nobody seemed to publish them any more, newest first: none of them may be. */
  collected: z.array(z.string()).optional(),
});

export type SnapshotRecord = z.infer<typeof snapshotRecordSchema>;

export function encodeSnapshotRecord(record: SnapshotRecord): Uint8Array {
  return Buffer.from(`${JSON.stringify(record, undefined, 2)}\n`);
}

export function decodeSnapshotRecord(name: string, body: Uint8Array): SnapshotRecord {
  try {
    return snapshotRecordSchema.parse(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch (error) {
    throw new SandboxerError("image_damaged", `The record of the filesystem snapshot "${name}" cannot be read.`, {
      cause: error,
    });
  }
}

export function isSnapshotName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text);
}

/** The key of a snapshot's record or of one of its images. */
export function snapshotKey(name: string, file: string): string {
  return `${SNAPSHOTS_FOLDER}/${name}/${file}`;
}
