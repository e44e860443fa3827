import { z } from "zod";
import { maxLossSchema } from "../../max-loss.ts";
import { retentionSchema } from "../../retention.ts";
import { createRequestSchema, keySchema, restoreRequestSchema } from "../create-request.ts";
import {
  durationSchema,
  flagSchema,
  labelFilterSchema,
  labelsSchema,
  nameSchema,
  pageOf,
  pageQuerySchema,
} from "../common.ts";
import { removedDataSchema } from "../removed-data.ts";
import { previewedKeepSchema, retentionPreviewSchema } from "../retention-preview.ts";
import { route } from "../route.ts";
import {
  acquiredSandboxSchema,
  createdSandboxSchema,
  damagedSandboxSchema,
  RECORD_STATES,
  movedSandboxSchema,
  sandboxRecordSchema,
} from "../sandbox-record.ts";

const tag = "sandboxes";
export const sandboxParams = z.object({ id: z.string().min(1).max(128) });

const handoffResultSchema = z
  .object({
    sandbox: sandboxRecordSchema,
    from: z.string().nullable(),
    to: z.string(),
    elapsed_ms: z.number(),
    paused_ms: z.number().nullable().meta({ description: "For how long nobody ran it." }),
  })
  .meta({ id: "Handoff" });

const reachabilitySchema = z
  .object({
    reachable: z.boolean(),
    state: z.enum(RECORD_STATES),
    summary: z.string(),
    owner_url: z.string().nullable(),
    round_trip_ms: z.number().nullable(),
  })
  .meta({ id: "Reachability" });

const statsSchema = z
  .object({ memory_bytes: z.number(), disk_bytes: z.number(), cpu_ms: z.number() })
  .meta({ id: "Stats" });

export const SANDBOX_ROUTES = {
  createSandbox: route({
    method: "POST",
    path: "/v1/sandboxes",
    summary: "Make a sandbox.",
    tag,
    scope: "use",
    body: createRequestSchema,
    status: 201,
    response: createdSandboxSchema,
    idempotent: true,
    operation: "create",
  }),
  acquireSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/acquire",
    summary: "The sandbox with this key: the one that is there, one from its newest snapshot, or a fresh one.",
    tag,
    scope: "use",
    body: createRequestSchema.extend({ key: keySchema }),
    status: 200,
    response: acquiredSandboxSchema,
    operation: "acquire",
  }),
  listSandboxes: route({
    method: "GET",
    path: "/v1/sandboxes",
    summary: "The sandboxes of this server and of its store, newest first.",
    tag,
    scope: "read",
    query: pageQuerySchema.extend({
      state: z.enum(RECORD_STATES).optional(),
      backend: z.string().optional(),
      name: z.string().optional(),
      key: z.string().optional(),
      at_risk: flagSchema.optional().meta({ description: "Only those whose max_loss cannot be kept, or only others." }),
      label: labelFilterSchema,
    }),
    status: 200,
    response: pageOf(sandboxRecordSchema).extend({
      damaged: z
        .array(damagedSandboxSchema)
        .meta({ description: "Stored sandboxes whose record cannot be read; only in lists without a filter." }),
    }),
  }),
  getSandbox: route({
    method: "GET",
    path: "/v1/sandboxes/{id}",
    summary: "One sandbox, wherever it is.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: sandboxRecordSchema,
  }),
  updateSandbox: route({
    method: "PATCH",
    path: "/v1/sandboxes/{id}",
    summary: "Change name, labels, idle timeout, max_loss or retention.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({
      name: nameSchema.nullable().optional(),
      labels: labelsSchema.optional(),
      idle_timeout: z.number().finite().nonnegative().max(315_360_000).optional(),
      max_loss: maxLossSchema.nullable().optional().meta({ description: "null: nothing is promised." }),
      retention: retentionSchema.nullable().optional().meta({ description: "null: as the server says." }),
    }),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
  }),
  previewRetention: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/retention",
    summary: "What of its saved states stays, what goes with the next save, and how many bytes; nothing is removed.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({
      keep_checkpoints: previewedKeepSchema.optional(),
      keep_snapshots: previewedKeepSchema.optional(),
    }),
    status: 200,
    response: retentionPreviewSchema,
  }),
  destroySandbox: route({
    method: "DELETE",
    path: "/v1/sandboxes/{id}",
    summary: "Destroy it and everything that is stored of it.",
    tag,
    scope: "use",
    params: sandboxParams,
    status: 200,
    response: removedDataSchema,
    fenced: true,
  }),
  checkpointSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/checkpoint",
    summary: "Save everything and stop, or go on; any server of the store can take it up from there.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        leave_running: z
          .boolean()
          .optional()
          .meta({ description: "It goes on here, and begins with this state if its server dies." }),
      })
      .optional(),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
    operation: "checkpoint",
  }),
  resumeSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/resume",
    summary: "Wake it here; a server that runs it is asked to give it up.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ checkpoint: z.string().optional() }).optional(),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
    operation: "resume",
  }),
  forkSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/fork",
    summary: "Capture it once and make N new sandboxes of that; it goes on.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: restoreRequestSchema
      .omit({ backend: true, image: true })
      .extend({ count: z.number().int().min(1).max(100).default(1) }),
    status: 201,
    response: z.object({ snapshot_id: z.string(), items: z.array(createdSandboxSchema) }).meta({ id: "Fork" }),
    idempotent: true,
    fenced: true,
    operation: "fork",
  }),
  rewindSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/rewind",
    summary: "Put it back to a snapshot, in place.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ snapshot_id: z.string().min(1) }),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
    operation: "rewind",
  }),
  moveSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/move",
    summary: "Move it to another backend with its workspace; it keeps its id, name, key and token.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({
      backend: z.string().min(1).max(64),
      image: restoreRequestSchema.shape.image,
      profile: restoreRequestSchema.shape.profile,
      inputs: restoreRequestSchema.shape.inputs,
    }),
    status: 200,
    response: movedSandboxSchema,
    idempotent: true,
    fenced: true,
    operation: "move",
  }),
  handoffSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/handoff",
    summary: "Move it to another server of the store.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ to: z.string().min(1).max(2048).meta({ description: "URL or instance id." }) }),
    status: 200,
    response: handoffResultSchema,
    fenced: true,
    operation: "handoff",
  }),
  extendTtl: route({
    method: "PATCH",
    path: "/v1/sandboxes/{id}/ttl",
    summary: "Let it live for this long from now.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ duration: durationSchema }),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
  }),
  expireSandboxes: route({
    method: "POST",
    path: "/v1/sandboxes/expire",
    summary: "Say which sandboxes are past their time; destroy them with apply.",
    tag,
    scope: "use",
    query: z.object({ apply: flagSchema.optional() }),
    status: 200,
    response: z
      .object({
        applied: z.boolean(),
        items: z.array(sandboxRecordSchema),
        failed: z.array(z.object({ id: z.string(), message: z.string() })),
      })
      .meta({ id: "Expiry" }),
  }),
  recreateSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/recreate",
    summary: "Make it anew from what it was made of, under the same id; its state is lost.",
    tag,
    scope: "use",
    params: sandboxParams,
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
    operation: "recreate",
  }),
  reachability: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/reachability",
    summary: "Whether it answers, and how fast.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: reachabilitySchema,
  }),
  sandboxStats: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/stats",
    summary: "Memory, disk and CPU that it uses now.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: statsSchema,
  }),
} as const;
