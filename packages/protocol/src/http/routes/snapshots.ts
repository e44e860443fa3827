import { z } from "zod";
import { carriedSchema } from "../carried.ts";
import { restoreRequestSchema } from "../create-request.ts";
import { flagSchema, labelFilterSchema, labelsSchema, nameSchema, pageOf, pageQuerySchema } from "../common.ts";
import { route } from "../route.ts";
import { restoredSandboxSchema } from "../sandbox-record.ts";
import {
  damagedSnapshotSchema,
  diffSchema,
  SNAPSHOT_MODES,
  SNAPSHOT_STATES,
  snapshotRecordSchema,
} from "../snapshot-record.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "snapshots";
/** An id, or a name. */
const snapshotParams = z.object({ id: z.string().min(1).max(128) });

export const SNAPSHOT_ROUTES = {
  createSnapshot: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/snapshot",
    summary: "Capture a sandbox, which goes on; one that is stored is resumed first.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        name: nameSchema.optional(),
        labels: labelsSchema.optional(),
        mode: z
          .enum(["full", "filesystem", "workspace"])
          .optional()
          .meta({ description: "Absent: the most that the backend can. workspace: what every backend can load." }),
      })
      .optional(),
    status: 201,
    response: snapshotRecordSchema,
    idempotent: true,
    fenced: true,
    operation: "snapshot",
  }),
  listSnapshots: route({
    method: "GET",
    path: "/v1/snapshots",
    summary: "Snapshots, newest first.",
    tag,
    scope: "read",
    query: pageQuerySchema.extend({
      sandbox_id: z.string().optional(),
      name: z.string().optional(),
      mode: z.enum(SNAPSHOT_MODES).optional(),
      state: z.enum(SNAPSHOT_STATES).optional(),
      label: labelFilterSchema,
    }),
    status: 200,
    response: pageOf(snapshotRecordSchema).extend({
      damaged: z.array(damagedSnapshotSchema).meta({
        description: "Snapshots whose record cannot be read; only on the first page of lists without a filter.",
      }),
    }),
  }),
  getSnapshot: route({
    method: "GET",
    path: "/v1/snapshots/{id}",
    summary: "One snapshot, by id or name; with verify its data is looked at.",
    tag,
    scope: "read",
    params: snapshotParams,
    query: z.object({ verify: flagSchema.optional() }),
    status: 200,
    response: snapshotRecordSchema,
  }),
  updateSnapshot: route({
    method: "PATCH",
    path: "/v1/snapshots/{id}",
    summary: "Change its name or labels, or pin it.",
    tag,
    scope: "use",
    params: snapshotParams,
    body: z.strictObject({
      name: nameSchema.nullable().optional(),
      labels: labelsSchema.optional(),
      pinned: z.boolean().optional().meta({ description: "A pinned one is not removed, by whomever." }),
    }),
    status: 200,
    response: snapshotRecordSchema,
  }),
  deleteSnapshot: route({
    method: "DELETE",
    path: "/v1/snapshots/{id}",
    summary: "Remove a snapshot and its data; refused while something live depends on it, or it is pinned.",
    tag,
    scope: "use",
    params: snapshotParams,
    status: 204,
  }),
  restoreSnapshot: route({
    method: "POST",
    path: "/v1/snapshots/{id}/restore",
    summary: "A new sandbox with the state of the snapshot.",
    tag,
    scope: "use",
    params: snapshotParams,
    body: restoreRequestSchema.optional(),
    status: 201,
    response: restoredSandboxSchema,
    idempotent: true,
    operation: "restore",
  }),
  proveSnapshot: route({
    method: "POST",
    path: "/v1/snapshots/{id}/prove",
    summary:
      "Restore it where nobody can reach it, hear whether it answers, and end that; the record says how it went.",
    tag,
    scope: "use",
    params: snapshotParams,
    status: 200,
    response: snapshotRecordSchema,
    operation: "prove",
  }),
  explainSnapshot: route({
    method: "GET",
    path: "/v1/snapshots/{id}/explain",
    summary: "What a restore would carry, without doing it.",
    tag,
    scope: "read",
    params: snapshotParams,
    query: z.object({
      backend: z.string().min(1).max(64).optional().meta({ description: "Absent: the one that it was captured on." }),
    }),
    status: 200,
    response: carriedSchema,
  }),
  diffSnapshots: route({
    method: "GET",
    path: "/v1/snapshots/{id}/diff",
    summary: "What changed from this snapshot to another, or to a live sandbox.",
    tag,
    scope: "read",
    params: snapshotParams,
    query: z.object({
      to: z.string().min(1).meta({ description: "A snapshot's id or name, or sandbox:ID." }),
      limit: z.coerce.number().int().min(1).max(100_000).default(1000),
    }),
    status: 200,
    response: diffSchema,
  }),
} as const;
