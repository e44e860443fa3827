import { z } from "zod";
import { resourcesSchema } from "../creation-message.ts";
import { maxLossSchema } from "../max-loss.ts";
import { portSchema } from "../port.ts";
import { networkPolicySchema } from "../network/policy.ts";
import { retentionSchema } from "../retention.ts";
import { storedMessageSchema, storedTextSchema } from "../stored-limits.ts";
import { shownAffinitySchema } from "./affinity.ts";
import { carriedSchema } from "./carried.ts";
import { onExpirySchema, restartSchema, shownLabelsSchema, timestampSchema } from "./common.ts";

/**
 * The state of a sandbox for its users. `stored`: paused; any server can resume it. `unreachable`: its record exists,
 * but the sandbox cannot be found.
 */
export const RECORD_STATES = [
  "creating",
  "restoring",
  "running",
  "saving",
  "destroying",
  "stored",
  "unreachable",
  "destroyed",
] as const;

export const sandboxFlagsSchema = z.object({
  enable_checkpoint: z.boolean(),
  enable_idle_timeout_auto_checkpoint: z.boolean(),
  enable_sandbox_handoff: z.boolean(),
  on_disconnect: z.enum(["keep", "checkpoint"]),
});

export const ownerSchema = z.object({
  instance_id: z.string(),
  url: z.string().nullable(),
  /** Whether the responding server is the owner. */
  here: z.boolean(),
});

/** The chosen backend of a sandbox, and the reason. */
export const placementSchema = z.object({
  backend: storedTextSchema,
  strategy: storedTextSchema,
  reason: storedMessageSchema,
  passed_over: z.array(z.object({ backend: storedTextSchema, reason: storedMessageSchema })).max(1024),
});

/** The max_loss of a sandbox, and whether it is met. */
export const durabilitySchema = z.object({
  max_loss: maxLossSchema.nullable(),
  /** When the state was captured that the sandbox would resume from if its server died. */
  last_saved_at: timestampSchema.nullable(),
  at_risk: z
    .object({ since: timestampSchema, reason: z.string() })
    .nullable()
    .meta({ description: "Since when and why max_loss is not met; only known to the server that runs the sandbox." }),
});

/** The encryption of saved states: the name of a server's key, or the fingerprint of a client's. Never a key. */
export const shownEncryptionSchema = z.object({ held_by: z.enum(["server", "client"]), key: z.string() });

export const originSchema = z.object({
  /** The sandbox whose state this one started from. */
  sandbox_id: z.string().nullable(),
  snapshot_id: z.string().nullable(),
});

export const sandboxRecordSchema = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    state: z.enum(RECORD_STATES),
    /** Frozen, because its server cannot renew its lease. */
    frozen: z.boolean(),
    backend: z.string(),
    profile: z.string().nullable(),
    image: z.string().nullable(),
    user: z.string().nullable().default(null).meta({ description: "null: the image's user, then uid 1000." }),
    labels: shownLabelsSchema,
    key: z.string().nullable(),
    /** The hash of its settings: a key with another one means another sandbox. */
    spec_hash: z.string().nullable(),
    network: networkPolicySchema,
    resources: resourcesSchema,
    flags: sandboxFlagsSchema,
    owner: ownerSchema.nullable(),
    /** Grows with every change of owner; null for sandboxes that are not stored. */
    epoch: z.number().int().nullable(),
    created_at: timestampSchema,
    expires_at: timestampSchema.nullable(),
    on_expiry: onExpirySchema,
    restart: restartSchema,
    affinity: shownAffinitySchema
      .nullable()
      .default(null)
      .meta({ description: "The servers that it may run on; null: all." }),
    idle_timeout: z.number().meta({ description: "Seconds." }),
    idle_seconds: z.number().nullable(),
    busy_with: z.array(z.string()).nullable().meta({
      description: "Reasons why the sandbox is not idle, such as running processes; null: this server does not run it.",
    }),
    executing: z.boolean(),
    clients: z.number().int(),
    checkpoint: z.object({ name: z.string(), size_bytes: z.number().int(), created_at: timestampSchema }).nullable(),
    durability: durabilitySchema,
    retention: retentionSchema.nullable().meta({ description: "The sandbox's own rules; null: the server's default." }),
    encryption: shownEncryptionSchema
      .nullable()
      .meta({ description: "null: the server's default at the time of the save." }),
    public_ports: z.array(portSchema).meta({ description: "Ports whose preview URL anyone may open." }),
    origin: originSchema,
    placement: placementSchema.nullable(),
    /** Facts from the backend, such as an endpoint or a folder. */
    details: z.record(z.string(), z.string()),
  })
  .meta({ id: "Sandbox" });
export type SandboxRecord = z.infer<typeof sandboxRecordSchema>;

/** A sandbox whose stored record cannot be read. It is not touched. */
export const damagedSandboxSchema = z
  .object({
    id: z.string(),
    object: z.string().meta({ description: "The stored object or file that cannot be read." }),
    message: z.string(),
    next_step: z.string(),
  })
  .meta({ id: "DamagedSandbox" });
export type DamagedSandbox = z.infer<typeof damagedSandboxSchema>;

export const createdSandboxSchema = sandboxRecordSchema
  .extend({ token: z.string().meta({ description: "Returned only once. Anyone who has the token can attach." }) })
  .meta({ id: "CreatedSandbox" });
export type CreatedSandboxRecord = z.infer<typeof createdSandboxSchema>;

/** A sandbox that started from a saved state, and what it kept of it. */
export const restoredSandboxSchema = createdSandboxSchema
  .extend({ carried: carriedSchema })
  .meta({ id: "RestoredSandbox" });

/** A sandbox that was moved to another backend. It keeps its token, which is not returned again. */
export const movedSandboxSchema = sandboxRecordSchema.extend({ carried: carriedSchema }).meta({ id: "MovedSandbox" });

/** How a key was answered: with the existing sandbox, with one restored from its newest snapshot, or with a new one. */
export const ACQUIRE_TIERS = ["reattached", "restored", "fresh"] as const;
export type AcquireTier = (typeof ACQUIRE_TIERS)[number];

export const acquiredSandboxSchema = sandboxRecordSchema
  .extend({
    tier: z.enum(ACQUIRE_TIERS),
    token: z
      .string()
      .nullable()
      .meta({ description: "Token of a new sandbox, returned only once; null for an existing sandbox." }),
  })
  .meta({ id: "AcquiredSandbox" });
