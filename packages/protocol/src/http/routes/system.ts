import { z } from "zod";
import { flagSchema, pageOf, pageQuerySchema, shownLabelsSchema } from "../common.ts";
import { eventRecordSchema, OPERATION_KINDS, operationRecordSchema } from "../operation-record.ts";
import { route } from "../route.ts";

const tag = "system";

export const backendRecordSchema = z
  .object({
    name: z.string(),
    default: z.boolean(),
    ok: z.boolean(),
    summary: z.string(),
    remedy: z.string().nullable(),
    capabilities: z.record(z.string(), z.union([z.string(), z.boolean()])),
  })
  .meta({ id: "Backend" });

export const instanceRecordSchema = z
  .object({
    id: z.string(),
    url: z.string().nullable(),
    here: z.boolean(),
    alive: z.boolean(),
    labels: shownLabelsSchema.meta({ description: "Its operator's labels, for the affinity of sandboxes." }),
    /** It cannot renew its lease, so its sandboxes are frozen. Null: unknown. */
    frozen: z.boolean().nullable(),
    frozen_reason: z.string().nullable(),
    owns: z.array(z.string()),
    /** Sandboxes that other servers have requested from it. */
    wanted: z.array(z.string()),
    /** The same, with their targets. */
    handoffs: z.array(
      z.object({
        sandbox_id: z.string(),
        /** The server that requested it. */
        to: z.string(),
        /** Why it was refused; null: the handoff is in progress. */
        refused: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: "Instance" });

const count = z.number().int().nonnegative();

/** The warm pool. Its sandboxes belong to nobody, and are not counted in `sandboxes`. */
const warmPoolSchema = z
  .object({
    max: count.meta({ description: "Maximum size of the pool; 0: no pool." }),
    ready: count,
    preparing: count,
    handed_out: count.meta({ description: "Requests served from the pool since the server started." }),
    missed: count.meta({ description: "Requests that found the pool empty and waited for a new sandbox." }),
    failed: count.meta({ description: "Pooled sandboxes that failed to start or were unusable." }),
    expired: count.meta({ description: "Pooled sandboxes that expired unused." }),
  })
  .meta({ id: "WarmPool" });

const engineRecordSchema = z
  .object({
    version: z.string(),
    platform: z.string().nullable().meta({ description: "null if the engine was not tested on this machine yet." }),
    control: z.enum(["messages", "commands"]).nullable().meta({
      description:
        "How the server drives the engine's sandboxes: messages to their control sockets, or runsc commands. null if the engine was not tested on this machine yet.",
    }),
    source: z.string(),
    state: z.enum(["default", "used", "installed", "fetching", "ready", "failed"]).meta({
      description:
        "default: new sandboxes use it. used: a checkpoint needed it. installed: nothing has needed it. ready: the default after a restart.",
    }),
    message: z.string().nullable(),
  })
  .meta({ id: "Engine" });

export const serverRecordSchema = z
  .object({
    version: z.string(),
    instance_id: z.string().nullable(),
    store: z.string().nullable(),
    default_backend: z.string(),
    draining: z.boolean(),
    sandboxes: z.number().int(),
    dozing: z.number().int().meta({ description: "Sandboxes that use no CPU because nothing runs in them." }),
    max_sandboxes: z.number().int(),
    warm_pool: warmPoolSchema.nullable().meta({
      description: "null if the default backend has no warm pool.",
    }),
    engines: z.array(engineRecordSchema).meta({
      description:
        "The gVisor engines of this server, side by side. A checkpoint is restored by the one that wrote it.",
    }),
    scope: z.enum(["read", "use", "admin"]).meta({ description: "Scope of the caller's key." }),
    has_key: z.boolean().meta({ description: "Whether the caller sent a key; a server without keys needs none." }),
  })
  .meta({ id: "Server" });

/** Profiles as in their files; see docs/reference/profiles.md. */
const profileRecordSchema = z
  .looseObject({ name: z.string(), description: z.string().optional() })
  .meta({ id: "Profile" });

export const SYSTEM_ROUTES = {
  serverInfo: route({
    method: "GET",
    path: "/v1/server",
    summary: "Get the version, load and settings of this server.",
    tag,
    scope: "read",
    status: 200,
    response: serverRecordSchema,
  }),
  listProfiles: route({
    method: "GET",
    path: "/v1/profiles",
    summary: "List the profiles.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(profileRecordSchema),
  }),
  getProfile: route({
    method: "GET",
    path: "/v1/profiles/{name}",
    summary: "Get a profile.",
    tag,
    scope: "read",
    params: z.object({ name: z.string().min(1).max(128) }),
    status: 200,
    response: profileRecordSchema,
  }),
  listBackends: route({
    method: "GET",
    path: "/v1/backends",
    summary: "List the backends, their capabilities and whether they work.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(backendRecordSchema),
  }),
  listInstances: route({
    method: "GET",
    path: "/v1/instances",
    summary: "List the servers that share the store and the sandboxes they own.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(instanceRecordSchema),
  }),
  listOperations: route({
    method: "GET",
    path: "/v1/operations",
    summary: "List running and finished operations, newest first.",
    tag,
    scope: "read",
    query: pageQuerySchema.extend({
      sandbox_id: z.string().optional(),
      kind: z.enum(OPERATION_KINDS).optional(),
      state: z.enum(["running", "done", "failed"]).optional(),
    }),
    status: 200,
    response: pageOf(operationRecordSchema),
  }),
  getOperation: route({
    method: "GET",
    path: "/v1/operations/{id}",
    summary: "Get an operation with its phase, progress and result.",
    tag,
    scope: "read",
    params: z.object({ id: z.string().min(1).max(128) }),
    query: z.object({
      wait: z.coerce
        .number()
        .min(0)
        .max(60)
        .optional()
        .meta({ description: "Seconds to wait for the operation to end." }),
    }),
    status: 200,
    response: operationRecordSchema,
  }),
  events: route({
    method: "GET",
    path: "/v1/events",
    summary: "Read events from a cursor on: as server-sent events with follow, otherwise as a page.",
    tag,
    scope: "read",
    query: pageQuerySchema.extend({
      sandbox_id: z.string().optional(),
      type: z.string().optional(),
      follow: flagSchema.optional(),
    }),
    status: 200,
    response: pageOf(eventRecordSchema),
    alternatives: [{ stream: "text/event-stream" }],
  }),
} as const;
