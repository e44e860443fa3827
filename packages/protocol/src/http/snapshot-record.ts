import { z } from "zod";
import { damagedSandboxSchema, shownEncryptionSchema } from "./sandbox-record.ts";
import { shownLabelsSchema, timestampSchema } from "./common.ts";

export const SNAPSHOT_MODES = ["full", "filesystem", "workspace", "metadata"] as const;

/** The state of a snapshot: `ready` can be restored; for `damaged` and `missing`, `problem` has the reason. */
export const SNAPSHOT_STATES = ["ready", "damaged", "missing"] as const;

export const snapshotRecordSchema = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    state: z.enum(SNAPSHOT_STATES),
    problem: z.string().nullable(),
    mode: z.enum(SNAPSHOT_MODES),
    kind: z.string(),
    backend: z.string(),
    profile: z.string().nullable(),
    labels: shownLabelsSchema,
    /** The sandbox that was captured. */
    sandbox_id: z.string(),
    sandbox_name: z.string().nullable(),
    /** The snapshot that the captured sandbox itself was created from, or rewound to. */
    parent: z.string().nullable(),
    /** The snapshots whose parent this is. */
    children: z.array(z.string()),
    /** The existing sandboxes that were created from it. */
    sandboxes: z.array(z.string()),
    /**
     * Why it was taken: on request, for a fork, with a name over WebSocket, for a move to another backend, or because a
     * promotion was about to replace the sandbox's state.
     */
    reason: z.enum(["request", "fork", "named", "move", "promote"]),
    pinned: z.boolean().meta({ description: "Cannot be deleted and is exempt from retention until it is unpinned." }),
    encryption: shownEncryptionSchema.nullable().meta({ description: "null: the server's default when it was taken." }),
    size_bytes: z.number().int(),
    created_at: timestampSchema,
    proven: z.object({ at: timestampSchema, engine: z.string() }).nullable().meta({
      description:
        "Time and engine of the last successful test restore; null if there was none or the last one failed.",
    }),
    unproven: z
      .object({ at: timestampSchema, reason: z.string() })
      .nullable()
      .meta({ description: "Time of and reason for the failure of the last test restore." }),
    details: z.record(z.string(), z.string()),
  })
  .meta({ id: "Snapshot" });
export type SnapshotInfo = z.infer<typeof snapshotRecordSchema>;

/** A snapshot whose record cannot be read. It is not touched. */
export const damagedSnapshotSchema = damagedSandboxSchema.meta({ id: "DamagedSnapshot" });
export type DamagedSnapshot = z.infer<typeof damagedSnapshotSchema>;

export const fileChangeSchema = z.object({
  path: z.string(),
  change: z.enum(["added", "changed", "removed"]),
  kind: z.enum(["file", "folder", "symlink", "other"]),
  size_before: z.number().int().nullable(),
  size_after: z.number().int().nullable(),
});
export type FileChange = z.infer<typeof fileChangeSchema>;

export const diffSchema = z
  .object({
    from: z.string(),
    to: z.string(),
    added: z.number().int(),
    changed: z.number().int(),
    removed: z.number().int(),
    changes: z.array(fileChangeSchema),
    /** The list is truncated. */
    truncated: z.boolean(),
  })
  .meta({ id: "Diff" });
export type SnapshotDiff = z.infer<typeof diffSchema>;
