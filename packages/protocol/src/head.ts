import { z } from "zod";
import { placementSchema } from "./http/sandbox-record.ts";
import { maxLossSchema } from "./max-loss.ts";
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
 * Fields that a reader does not know survive when it writes the head back. Times are ISO 8601 in UTC; they are for
 * people and never decide anything.
 */
export const HEAD_FORMAT = 1;

/** How many earlier nonces a head remembers, so that a writer whose answer was lost finds out that it was applied. */
export const HEAD_HISTORY_LENGTH = 8;

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);

/** Points at one image: `sha256` is the digest of its manifest, which holds the digests of everything else. */
export const checkpointReferenceSchema = z.looseObject({
  name: storedTextSchema.min(1),
  sha256: sha256Schema,
  /** What it takes up with all blocks that it is made of. */
  size_bytes: storedSizeSchema,
  /** What of that was not in the store before; absent in checkpoints of before image format 2. */
  added_bytes: storedSizeSchema.optional(),
  created_at: storedTimeSchema,
  /** What kind of saved state it is: `gvisor-checkpoint` and so on. */
  kind: storedTextSchema,
  /** The checkpoint that was the sandbox's state before this one. */
  parent: storedTextSchema.nullable(),
});

/** An instance that asks the owner to yield; `refused` is the owner's answer when it cannot. */
const handoffRequestSchema = z.looseObject({
  instance_id: storedTextSchema.min(1),
  /** Tells one request of an instance from its next. */
  request: storedTextSchema.optional(),
  refused: storedMessageSchema.optional(),
});

const headFlagsSchema = z.looseObject({
  enable_checkpoint: z.boolean(),
  enable_idle_timeout_auto_checkpoint: z.boolean(),
  enable_sandbox_handoff: z.boolean(),
  on_disconnect: z.enum(["keep", "checkpoint"]),
});

/** Where the sandbox's first state came from; all null for one that was made fresh. */
const lineageSchema = z.looseObject({
  sandbox_id: storedTextSchema.nullable(),
  checkpoint: storedTextSchema.nullable(),
  filesystem_snapshot: storedTextSchema.nullable(),
  /** The snapshot that it was restored or forked from, or last rewound to. */
  snapshot: storedTextSchema.nullable().optional(),
});

/** The key of a client, 32 bytes in base64, for what is encrypted with it. */
export const ENCRYPTION_KEY_HEADER = "sandboxer-encryption-key";

/** A key of the server, where `Authorization` belongs to a proxy in front of it. */
export const KEY_HEADER = "sandboxer-key";

/** What the saved states of a sandbox are encrypted with. Never a key: a name, or a fingerprint. */
export const encryptionSchema = z.looseObject({
  held_by: z.enum(["server", "client"]),
  /** The name of the server's secret; the fingerprint of a client's key. */
  key: storedTextSchema,
});

/** What people and programs know a sandbox by, and what was promised of it. None of it changes what runs inside. */
export const aboutSchema = z.looseObject({
  name: storedTextSchema.nullable().default(null),
  profile: storedTextSchema.nullable().default(null),
  /** Chosen by its user, to find it again. */
  key: storedTextSchema.nullable().default(null),
  spec_hash: storedTextSchema.nullable().default(null),
  /** After this it may be destroyed by `expire`. */
  expires_at: storedTimeSchema.nullable().default(null),
  placement: placementSchema.nullable().default(null),
  /** How much of its work may be lost; what cannot be read promises nothing. */
  max_loss: maxLossSchema.nullable().default(null).catch(null),
  /** Which of its saved states stay; null: as its server says. */
  retention: storedRetentionSchema.default(null),
  /** Null: with the server's own key, where it has one when the sandbox is saved. */
  encryption: encryptionSchema.nullable().default(null),
});

const headTimesSchema = z.looseObject({
  updated_at: storedTimeSchema,
  claimed_at: storedTimeSchema.nullable(),
  deleted_at: storedTimeSchema.nullable(),
});

export const headSchema = z.looseObject({
  format: z.literal(HEAD_FORMAT),
  /** Grows with every change of owner and with the destruction; never shrinks. */
  epoch: storedEpochSchema,
  /** The id of the instance that may run the sandbox and move the pointer. */
  owner: storedTextSchema.min(1).nullable(),
  /** `live` exactly when there is an owner; `deleted` is final and the head stays as a tombstone. */
  state: z.enum(["live", "parked", "deleted"]),
  want: handoffRequestSchema.nullable(),
  checkpoint: checkpointReferenceSchema.nullable(),
  /** The nonces of the versions before this one, newest first. */
  history: z.array(storedTextSchema).max(HEAD_HISTORY_LENGTH),
  /** Fresh in every version. */
  nonce: storedTextSchema.min(1),
  /** For people: created, running, checkpointed, deleted. */
  status: storedTextSchema,
  /** Imported records may hold any text here. */
  createdAt: storedTimeSchema.catch("1970-01-01T00:00:00.000Z"),
  lastCheckpointedAt: storedTimeSchema.nullable(),
  /** Seconds. */
  idle_timeout: storedSecondsSchema,
  backend: storedTextSchema,
  /** What the sandbox is made of, in the form in which its backend takes it. */
  spec: z.record(z.string(), z.unknown()),
  flags: headFlagsSchema,
  /** SHA-256 of the sandbox's token, in hex. */
  token_hash: storedTextSchema.nullable(),
  lineage: lineageSchema,
  about: aboutSchema.optional(),
  /**
   * Who has the sandbox while no server runs it: the store, as its newest checkpoint, or its provider, which keeps the
   * sandbox itself. Absent: the store.
   */
  residence: z.enum(["store", "provider"]).optional(),
  /** The number of the copy at its provider that is the sandbox. A copy that replaces another gets the next number. Absent: 0. */
  copy: storedCountSchema.optional(),
  /** A second copy that may exist at a provider, during or after a rewind or a move. The owner removes it. */
  spare_copy: z
    .looseObject({
      backend: storedTextSchema,
      copy: storedCountSchema,
      /** The spec it was made from; absent: the spec of the sandbox. */
      spec: z.record(z.string(), z.unknown()).optional(),
    })
    .nullable()
    .optional(),
  /** Since when its provider has had it stopped; null: it runs there. Means something only while nobody owns it. */
  stopped_at: storedTimeSchema.nullable().optional(),
  timestamps: headTimesSchema,
});

export type Head = z.infer<typeof headSchema>;
export type CheckpointReference = z.infer<typeof checkpointReferenceSchema>;
export type HeadFlags = z.infer<typeof headFlagsSchema>;
export type Encryption = z.infer<typeof encryptionSchema>;
export type About = z.infer<typeof aboutSchema>;
export type Lineage = z.infer<typeof lineageSchema>;
