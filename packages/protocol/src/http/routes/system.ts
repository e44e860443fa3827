import { z } from "zod";
import { pageOf, pageQuerySchema, flagSchema } from "../common.ts";
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
    /** It cannot prove that it is alive, and holds its sandboxes still. Null: it has not said. */
    frozen: z.boolean().nullable(),
    frozen_reason: z.string().nullable(),
    owns: z.array(z.string()),
    /** Sandboxes that others have asked it for. */
    wanted: z.array(z.string()),
    /** The same, with whom they are on their way to. */
    handoffs: z.array(
      z.object({
        sandbox_id: z.string(),
        /** The instance that has asked for it. */
        to: z.string(),
        /** Why it stays; null: it is on its way. */
        refused: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: "Instance" });

const count = z.number().int().nonnegative();

/** Sandboxes that are started ahead of the need. They are nobody's, and not among `sandboxes`. */
const warmPoolSchema = z
  .object({
    max: count.meta({ description: "How many there may be at most; 0: none are wanted." }),
    ready: count,
    preparing: count,
    handed_out: count.meta({ description: "Requests that got one, since the start." }),
    missed: count.meta({ description: "Requests that found none, and waited for a new one." }),
    failed: count.meta({ description: "Those that could not be made, or were of no use." }),
    expired: count.meta({ description: "Those that nobody wanted in time." }),
  })
  .meta({ id: "WarmPool" });

export const serverRecordSchema = z
  .object({
    version: z.string(),
    instance_id: z.string().nullable(),
    store: z.string().nullable(),
    default_backend: z.string(),
    draining: z.boolean(),
    sandboxes: z.number().int(),
    dozing: z
      .number()
      .int()
      .meta({ description: "Of the sandboxes, those that take no processor: nothing runs in them." }),
    max_sandboxes: z.number().int(),
    warm_pool: warmPoolSchema.nullable().meta({
      description: "Null where the default backend starts no sandboxes ahead of the need.",
    }),
    scope: z.enum(["read", "use", "admin"]).meta({ description: "What the caller's key allows." }),
    has_key: z
      .boolean()
      .meta({ description: "Whether the caller came with a key; a server without keys asks for none." }),
  })
  .meta({ id: "Server" });

/** Profiles as their files say; see docs/reference/profiles.md. */
const profileRecordSchema = z
  .looseObject({ name: z.string(), description: z.string().optional() })
  .meta({ id: "Profile" });

export const SYSTEM_ROUTES = {
  serverInfo: route({
    method: "GET",
    path: "/v1/server",
    summary: "What this server is and has.",
    tag,
    scope: "read",
    status: 200,
    response: serverRecordSchema,
  }),
  listProfiles: route({
    method: "GET",
    path: "/v1/profiles",
    summary: "The profiles that sandboxes can be made with.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(profileRecordSchema),
  }),
  getProfile: route({
    method: "GET",
    path: "/v1/profiles/{name}",
    summary: "One profile.",
    tag,
    scope: "read",
    params: z.object({ name: z.string().min(1).max(128) }),
    status: 200,
    response: profileRecordSchema,
  }),
  listBackends: route({
    method: "GET",
    path: "/v1/backends",
    summary: "What can make sandboxes here, what each can do, and whether it works now.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(backendRecordSchema),
  }),
  listInstances: route({
    method: "GET",
    path: "/v1/instances",
    summary: "Every server on the store, and what each owns.",
    tag,
    scope: "read",
    status: 200,
    response: pageOf(instanceRecordSchema),
  }),
  listOperations: route({
    method: "GET",
    path: "/v1/operations",
    summary: "What is under way, and what was, newest first.",
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
    summary: "One operation: its phase, its progress, its end.",
    tag,
    scope: "read",
    params: z.object({ id: z.string().min(1).max(128) }),
    query: z.object({
      wait: z.coerce.number().min(0).max(60).optional().meta({ description: "Seconds to wait for its end." }),
    }),
    status: 200,
    response: operationRecordSchema,
  }),
  events: route({
    method: "GET",
    path: "/v1/events",
    summary: "What happens, from a cursor on: server-sent events with follow, else a page.",
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
