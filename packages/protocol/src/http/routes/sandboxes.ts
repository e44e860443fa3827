import { z } from "zod";
import { maxLossSchema } from "../../max-loss.ts";
import { portsSchema } from "../../port.ts";
import { sandboxNetworkSchema } from "../network-record.ts";
import { networkSettingSchema } from "../../network/policy.ts";
import { retentionSchema } from "../../retention.ts";
import { affinitySchema } from "../affinity.ts";
import { createRequestSchema, keySchema, restoreRequestSchema } from "../create-request.ts";
import {
  durationSchema,
  flagSchema,
  labelFilterSchema,
  labelsSchema,
  nameSchema,
  onExpirySchema,
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
    paused_ms: z.number().nullable().meta({ description: "Milliseconds for which the sandbox did not run." }),
  })
  .meta({ id: "Handoff" });

const promotedSandboxSchema = z
  .object({
    sandbox: sandboxRecordSchema,
    winner: z.string(),
    former_snapshot_id: z.string().meta({ description: "Snapshot of the state that the sandbox had before." }),
    deleted: z.array(z.string()).meta({ description: "The winner, and the other forks if that was requested." }),
    kept: z
      .array(z.object({ id: z.string(), message: z.string() }))
      .meta({ description: "Sandboxes that should have been deleted, and why they were not." }),
  })
  .meta({ id: "Promotion" });

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
    summary: "Create a sandbox.",
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
    summary: "Get the sandbox with this key: the existing one, one restored from its newest snapshot, or a new one.",
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
    summary: "List the sandboxes of this server and its store, newest first.",
    tag,
    scope: "read",
    query: pageQuerySchema.extend({
      state: z.enum(RECORD_STATES).optional(),
      backend: z.string().optional(),
      name: z.string().optional(),
      key: z.string().optional(),
      at_risk: flagSchema
        .optional()
        .meta({ description: "true: only sandboxes whose max_loss is not met; false: only the others." }),
      label: labelFilterSchema,
    }),
    status: 200,
    response: pageOf(sandboxRecordSchema).extend({
      damaged: z
        .array(damagedSandboxSchema)
        .meta({ description: "Sandboxes whose stored record cannot be read; only in unfiltered lists." }),
    }),
  }),
  getSandbox: route({
    method: "GET",
    path: "/v1/sandboxes/{id}",
    summary: "Get a sandbox, on whichever server it is.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: sandboxRecordSchema,
  }),
  updateSandbox: route({
    method: "PATCH",
    path: "/v1/sandboxes/{id}",
    summary:
      "Change the name, labels, lifetime, idle timeout, max_loss, retention, affinity, network or public ports of a sandbox.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({
      name: nameSchema.nullable().optional(),
      labels: labelsSchema.optional(),
      ttl: durationSchema.nullable().optional().meta({
        description: "Lifetime from now; null: none, or the one of the profile.",
      }),
      on_expiry: onExpirySchema.optional(),
      idle_timeout: z.number().finite().nonnegative().max(315_360_000).optional(),
      max_loss: maxLossSchema.nullable().optional().meta({ description: "null: no limit is promised." }),
      retention: retentionSchema.nullable().optional().meta({ description: "null: the server's default." }),
      affinity: affinitySchema.nullable().optional().meta({
        description: "null: any server. A running sandbox is not moved.",
      }),
      public_ports: portsSchema.optional().meta({ description: "All ports whose preview URL anyone may open." }),
      network: networkSettingSchema.optional(),
    }),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
  }),
  sandboxNetwork: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/network",
    summary: "Get the network policy of a sandbox, its traffic, and the connections that were refused.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: sandboxNetworkSchema,
  }),
  previewRetention: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/retention",
    summary: "Preview which checkpoints and snapshots the next save would keep and remove. Changes nothing.",
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
    summary: "Delete a sandbox and its checkpoints. Snapshots are kept.",
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
    summary: "Save a sandbox and stop it, or keep it running. Any server of the store can resume it.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        leave_running: z
          .boolean()
          .optional()
          .meta({ description: "Keep the sandbox running. It resumes from this checkpoint if its server dies." }),
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
    summary: "Resume a sandbox on this server. A server that runs it is asked to hand it off.",
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
    summary: "Create N new sandboxes from this one, which keeps running.",
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
    summary: "Return a sandbox to a snapshot, in place.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ snapshot_id: z.string().min(1) }),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
    operation: "rewind",
  }),
  promoteSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/promote",
    summary:
      "Give a sandbox the state of one of its forks, which is deleted. The sandbox keeps its id, name and token.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({
      winner: z.string().min(1).max(128).meta({
        description: "Id of the fork: a sandbox that was forked or restored from this one, directly or not.",
      }),
      discard_others: z.boolean().optional().meta({ description: "Delete the other forks of this sandbox too." }),
    }),
    status: 200,
    response: promotedSandboxSchema,
    idempotent: true,
    fenced: true,
    operation: "promote",
  }),
  moveSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/move",
    summary: "Move a sandbox with its workspace to another backend. It keeps its id, name, key and token.",
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
    summary: "Move a sandbox to another server of the store.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ to: z.string().min(1).max(2048).meta({ description: "URL or id of the target server." }) }),
    status: 200,
    response: handoffResultSchema,
    fenced: true,
    operation: "handoff",
  }),
  extendTtl: route({
    method: "PATCH",
    path: "/v1/sandboxes/{id}/ttl",
    summary: "Set the remaining lifetime of a sandbox.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ duration: durationSchema, on_expiry: onExpirySchema.optional() }),
    status: 200,
    response: sandboxRecordSchema,
    fenced: true,
  }),
  expireSandboxes: route({
    method: "POST",
    path: "/v1/sandboxes/expire",
    summary: "List expired sandboxes; delete them with apply=true.",
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
    summary: "Create a sandbox again with the same id and settings. Its state is lost.",
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
    summary: "Check whether a sandbox answers, and how fast.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: reachabilitySchema,
  }),
  sandboxStats: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/stats",
    summary: "Get the current memory, disk and CPU use of a sandbox.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: statsSchema,
  }),
} as const;
