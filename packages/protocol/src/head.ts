import { z } from "zod";
import { storedAffinitySchema } from "./http/affinity.ts";
import { placementSchema } from "./http/sandbox-record.ts";
import { maxLossSchema } from "./max-loss.ts";
import { linkRoundsSchema, portsSchema } from "./port.ts";
import { storedRetentionSchema } from "./retention.ts";
import {
  storedCountSchema,
  storedEpochSchema,
  storedMessageSchema,
  storedSecondsSchema,
  storedSizeSchema,
  storedTextSchema,
  storedTimeSchema,
} from "./stored-limits.ts";

/**
 * The head of a sandbox: the one object that says who owns it and which checkpoint is its state. It is stored as
 * `{sandbox_id}/metadata.json` and changed only by compare-and-swap (see COMPATIBILITY.md).
 *
 * A writer keeps fields that it does not know. Times are ISO 8601 in UTC; they are for people and never decide anything.
 */
export const HEAD_FORMAT = 1;

/** How many earlier nonces a head remembers, so that a writer whose answer was lost can tell whether it was applied. */
export const HEAD_HISTORY_LENGTH = 8;

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);

/** Points to one image: `sha256` is the digest of its manifest, which has the digests of everything else. */
export const checkpointReferenceSchema = z.looseObject({
  name: storedTextSchema.min(1),
  sha256: sha256Schema,
  /** Its size with all blocks that it consists of. */
  size_bytes: storedSizeSchema,
  /** The part that was not in the store before; absent in checkpoints from before image format 2. */
  added_bytes: storedSizeSchema.optional(),
  created_at: storedTimeSchema,
  /** The kind of saved state: `gvisor-checkpoint` and so on. */
  kind: storedTextSchema,
  /** The sandbox's previous checkpoint. */
  parent: storedTextSchema.nullable(),
});

/** An instance that asks the owner to yield; `refused` is the owner's refusal. */
const handoffRequestSchema = z.looseObject({
  instance_id: storedTextSchema.min(1),
  /** Distinguishes one request of an instance from its next. */
  request: storedTextSchema.optional(),
  refused: storedMessageSchema.optional(),
});

const headFlagsSchema = z.looseObject({
  enable_checkpoint: z.boolean(),
  enable_idle_timeout_auto_checkpoint: z.boolean(),
  enable_sandbox_handoff: z.boolean(),
  on_disconnect: z.enum(["keep", "checkpoint"]),
});

/** The origin of the sandbox's first state; all null for one that was created from scratch. */
const lineageSchema = z.looseObject({
  sandbox_id: storedTextSchema.nullable(),
  checkpoint: storedTextSchema.nullable(),
  filesystem_snapshot: storedTextSchema.nullable(),
  /** The snapshot that it was restored or forked from, or that its state was last replaced with. */
  snapshot: storedTextSchema.nullable().optional(),
  /** The snapshot of the fork that created it; stays when its state is replaced. Absent: no fork created it. */
  fork: storedTextSchema.nullable().optional(),
});

/** How many sandboxes a promotion can end: the winner, and others if that was requested. */
export const MOST_ENDED = 101;

/** The last promotion: a fork of this sandbox gave it its state. */
const promotionSchema = z.looseObject({
  /** The fork. */
  sandbox_id: storedTextSchema,
  /** The snapshot of the state that this sandbox had before. */
  former: storedTextSchema,
  promoted_at: storedTimeSchema,
  /**
   * The sandboxes that it ends, each with its epoch at that time: one that was claimed since then is kept. The owner
   * removes them from the list once they are deleted.
   */
  ends: z.array(z.looseObject({ sandbox_id: storedTextSchema, epoch: storedEpochSchema })).max(MOST_ENDED),
});

/** A client's key, 32 bytes in base64, for data that is encrypted with it. */
export const ENCRYPTION_KEY_HEADER = "sandboxer-encryption-key";

/** A server key, if `Authorization` belongs to a proxy in front of the server. */
export const KEY_HEADER = "sandboxer-key";

/** The encryption of a sandbox's saved states. Never a key: a name, or a fingerprint. */
export const encryptionSchema = z.looseObject({
  held_by: z.enum(["server", "client"]),
  /** The name of the server's secret; the fingerprint of a client's key. */
  key: storedTextSchema,
});

/** Properties that its user may change: names, lifetime and promises. None of them affects what runs inside. */
export const aboutSchema = z.looseObject({
  name: storedTextSchema.nullable().default(null),
  profile: storedTextSchema.nullable().default(null),
  /** Chosen by its user, to find it again. */
  key: storedTextSchema.nullable().default(null),
  spec_hash: storedTextSchema.nullable().default(null),
  /** The end of its lifetime. */
  expires_at: storedTimeSchema.nullable().default(null),
  /** The effect of its end; absent, or a value of a later version: the sandbox is paused. */
  on_expiry: z.enum(["pause", "delete"]).optional().catch(undefined),
  /** Set at creation and never changed; absent, or a value of a later version: never. */
  restart: z.enum(["never", "always"]).optional().catch(undefined),
  /** The servers that it may run on; absent, null, or unreadable: all. */
  affinity: storedAffinitySchema.nullable().optional().catch(undefined),
  placement: placementSchema.nullable().default(null),
  /** How much of its work may be lost; an unreadable value promises nothing. */
  max_loss: maxLossSchema.nullable().default(null).catch(null),
  /** The retention of its saved states; null: the server's default. */
  retention: storedRetentionSchema.default(null),
  /** Null: the server's own key, if it has one when the sandbox is saved. */
  encryption: encryptionSchema.nullable().default(null),
  /** Ports that anyone may open through their preview URL; an unreadable list makes none public. */
  public_ports: portsSchema.default([]).catch([]),
  /** By port, how often its signed links were withdrawn; absent: never. */
  link_rounds: linkRoundsSchema.optional().catch(undefined),
});

const headTimesSchema = z.looseObject({
  updated_at: storedTimeSchema,
  claimed_at: storedTimeSchema.nullable(),
  deleted_at: storedTimeSchema.nullable(),
});

export const headSchema = z.looseObject({
  format: z.literal(HEAD_FORMAT),
  /** Grows with every change of owner and with the deletion; never shrinks. */
  epoch: storedEpochSchema,
  /** The id of the instance that may run the sandbox and move the pointer. */
  owner: storedTextSchema.min(1).nullable(),
  /** `live` exactly if there is an owner; `deleted` is final and the head stays as a tombstone. */
  state: z.enum(["live", "parked", "deleted"]),
  want: handoffRequestSchema.nullable(),
  checkpoint: checkpointReferenceSchema.nullable(),
  /** The nonces of earlier versions, newest first. */
  history: z.array(storedTextSchema).max(HEAD_HISTORY_LENGTH),
  /** Fresh in every version. */
  nonce: storedTextSchema.min(1),
  /** For people: created, running, checkpointed, deleted. */
  status: storedTextSchema,
  /** Imported records may have any text here. */
  createdAt: storedTimeSchema.catch("1970-01-01T00:00:00.000Z"),
  lastCheckpointedAt: storedTimeSchema.nullable(),
  /** Seconds. */
  idle_timeout: storedSecondsSchema,
  backend: storedTextSchema,
  /** The settings of the sandbox, in the form of its backend. */
  spec: z.record(z.string(), z.unknown()),
  flags: headFlagsSchema,
  /** SHA-256 of the sandbox's token, in hex. */
  token_hash: storedTextSchema.nullable(),
  lineage: lineageSchema,
  about: aboutSchema.optional(),
  /**
   * The place of the sandbox while no server runs it: the store has its newest checkpoint, or its provider has the
   * sandbox itself. Absent: the store.
   */
  residence: z.enum(["store", "provider"]).optional(),
  /**
   * The number of the copy at its provider that is the sandbox. A copy that replaces another gets the next number.
   * Absent: 0.
   */
  copy: storedCountSchema.optional(),
  /** A second copy that may exist at a provider, during or after a rewind or a move. The owner removes it. */
  spare_copy: z
    .looseObject({
      backend: storedTextSchema,
      copy: storedCountSchema,
      /** The spec it was created from; absent: the spec of the sandbox. */
      spec: z.record(z.string(), z.unknown()).optional(),
    })
    .nullable()
    .optional(),
  /** Absent or null: its state never came from a promotion. */
  promotion: promotionSchema.nullable().optional(),
  /** Since when its provider has stopped it; null: it runs there. Only valid while nobody owns it. */
  stopped_at: storedTimeSchema.nullable().optional(),
  timestamps: headTimesSchema,
});

export type Head = z.infer<typeof headSchema>;
export type CheckpointReference = z.infer<typeof checkpointReferenceSchema>;
export type HeadFlags = z.infer<typeof headFlagsSchema>;
export type Encryption = z.infer<typeof encryptionSchema>;
export type About = z.infer<typeof aboutSchema>;
export type Promotion = z.infer<typeof promotionSchema>;
export type Lineage = z.infer<typeof lineageSchema>;
