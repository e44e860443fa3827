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
    summary: "Take a snapshot of a sandbox, which keeps running. A paused sandbox is resumed first.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        name: nameSchema.optional(),
        labels: labelsSchema.optional(),
        mode: z.enum(["full", "filesystem", "workspace"]).optional().meta({
          description: "Default: the most that the backend supports. workspace: can be restored on every backend.",
        }),
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
    summary: "List snapshots, newest first.",
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
        description: "Snapshots whose record cannot be read; only on the first page of unfiltered lists.",
      }),
    }),
  }),
  getSnapshot: route({
    method: "GET",
    path: "/v1/snapshots/{id}",
    summary: "Get a snapshot by id or name; with verify, check its data.",
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
    summary: "Change the name or labels of a snapshot, or pin it.",
    tag,
    scope: "use",
    params: snapshotParams,
    body: z.strictObject({
      name: nameSchema.nullable().optional(),
      labels: labelsSchema.optional(),
      pinned: z
        .boolean()
        .optional()
        .meta({ description: "A pinned snapshot cannot be deleted and is exempt from retention." }),
    }),
    status: 200,
    response: snapshotRecordSchema,
  }),
  deleteSnapshot: route({
    method: "DELETE",
    path: "/v1/snapshots/{id}",
    summary: "Delete a snapshot and its data. Fails while a live sandbox depends on it or it is pinned.",
    tag,
    scope: "use",
    params: snapshotParams,
    status: 204,
  }),
  restoreSnapshot: route({
    method: "POST",
    path: "/v1/snapshots/{id}/restore",
    summary: "Create a new sandbox from a snapshot.",
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
    summary: "Test-restore a snapshot in isolation, then discard the copy. The snapshot's record has the result.",
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
    summary: "Preview what a restore would and would not bring back. Changes nothing.",
    tag,
    scope: "read",
    params: snapshotParams,
    query: z.object({
      backend: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .meta({ description: "Default: the backend that it was captured on." }),
    }),
    status: 200,
    response: carriedSchema,
  }),
  diffSnapshots: route({
    method: "GET",
    path: "/v1/snapshots/{id}/diff",
    summary: "List the files that changed between this snapshot and another one, or a live sandbox.",
    tag,
    scope: "read",
    params: snapshotParams.extend({
      id: snapshotParams.shape.id.meta({ description: "Id or name of a snapshot, or sandbox:ID." }),
    }),
    query: z.object({
      to: z.string().min(1).meta({ description: "Id or name of a snapshot, or sandbox:ID." }),
      limit: z.coerce.number().int().min(1).max(100_000).default(1000),
    }),
    status: 200,
    response: diffSchema,
  }),
} as const;
