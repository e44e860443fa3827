import { randomUUID } from "node:crypto";
import { storedCountSchema, storedTextSchema, storedWordsSchema } from "@sandboxer/protocol";
import { z } from "zod";
import { jsonOf } from "../support/json.ts";

/** Formats that all servers of a store must be able to read before one of them writes them. */
const KNOWN = ["owned-packs", "image-origin"] as const;
export type Known = (typeof KNOWN)[number];

/** The properties of a machine that saved states of a backend depend on. Absent parts: unknown. */
const storedMachineSchema = z.object({
  engines: z.array(storedTextSchema).max(1024).readonly().optional(),
  fetches_engines: z.boolean().optional(),
  platforms: z.array(storedTextSchema).max(64).readonly().optional(),
  architecture: storedTextSchema.optional(),
  cpu_features: z.array(storedTextSchema).max(4096).readonly().optional(),
});

const advertSchema = z.object({
  /** Its operator's labels, for the affinity of sandboxes. Absent: none. */
  labels: storedWordsSchema.optional().catch(undefined),
  /** Its backends, with what its machine offers to their saved states. Absent: unknown. */
  machines: z.record(storedTextSchema, storedMachineSchema).optional().catch(undefined),
});

/** What a server says about itself, so that others can choose it for a sandbox. */
export type Advert = Readonly<z.infer<typeof advertSchema>>;

/**
 * The liveness of one server process, stored as `instances/{instance_id}.json`. While it changes, the process is alive;
 * once it says dead, that instance owns nothing any more, whatever heads say.
 */
const liveRecordSchema = z.looseObject({
  format: z.literal(1),
  url: storedTextSchema.nullable(),
  beat: storedCountSchema,
  /** Up to ten years, as durations of settings. */
  ttl_ms: z.number().positive().max(315_360_000_000),
  nonce: storedTextSchema,
  /** Formats that it can read beyond those that every release can. */
  knows: z.array(storedTextSchema).max(1024).optional(),
  dead: z.literal(false).optional(),
  ...advertSchema.shape,
});

const deadRecordSchema = z.looseObject({
  format: z.literal(1),
  dead: z.literal(true),
  /** The instance that declared it dead. */
  by: storedTextSchema,
  nonce: storedTextSchema,
});

const livenessRecordSchema = z.union([deadRecordSchema, liveRecordSchema]);

export type LivenessRecord = z.infer<typeof livenessRecordSchema>;

export const INSTANCES_FOLDER = "instances";

export function instanceKey(instanceId: string): string {
  return `${INSTANCES_FOLDER}/${instanceId}.json`;
}

export function instanceIdOf(key: string): string {
  return key.slice(INSTANCES_FOLDER.length + 1, -".json".length);
}

export function liveRecord(
  url: string | null,
  beat: number,
  ttlMs: number,
  nonce: string = randomUUID(),
  advert: Advert = {},
): LivenessRecord {
  return { format: 1, url, beat, ttl_ms: ttlMs, nonce, knows: [...KNOWN], ...advert };
}

export function deadRecord(by: string, nonce: string = randomUUID()): LivenessRecord {
  return { format: 1, dead: true, by, nonce };
}

/** Numbers in a record may get a digit more between two lists. */
const DIGITS = 3;

/** Whether a listed record may say dead now: from one list to the next, the size of a live one hardly changes. */
export function mayHaveDied(sizeBefore: number, sizeBytes: number): boolean {
  return Math.abs(sizeBytes - sizeBefore) > DIGITS;
}

export function encodeRecord(record: LivenessRecord): Uint8Array {
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

/** Undefined if this release cannot read it: such an instance is not touched and counts as alive. */
export function decodeRecord(body: Uint8Array): LivenessRecord | undefined {
  return livenessRecordSchema.safeParse(jsonOf(body)).data;
}
