import { z } from "zod";
import { KEEP_MOST, keepsSomething } from "./keep-text.ts";

const count = z.number().int().min(0).max(KEEP_MOST);

/**
 * Which saved states of a sandbox stay: the newest ones, and the newest of each of the last hours and days that have any,
 * by UTC. What any of the three keeps stays. Times are those at which the states were captured.
 */
export const keepSchema = z
  .strictObject({ keep_last: count.optional(), hourly: count.optional(), daily: count.optional() })
  .refine(keepsSomething, { message: "keeps nothing: give keep_last, hourly or daily of at least 1" })
  .meta({ id: "Keep", examples: [{ keep_last: 3, hourly: 24, daily: 7 }] });
export type Keep = z.infer<typeof keepSchema>;

/** What of a sandbox stays. What is absent is up to the server. */
export const retentionSchema = z
  .strictObject({
    checkpoints: keepSchema.optional(),
    /** Of those without a name that are not pinned. */
    snapshots: keepSchema.optional(),
  })
  .meta({ id: "Retention" });
export type Retention = z.infer<typeof retentionSchema>;

const ALL: Keep = { keep_last: KEEP_MOST };

/** As it is stored: a rule that this release does not know may keep more than those that it knows, so that all stays. */
export const storedRetentionSchema = retentionSchema.nullable().catch({ checkpoints: ALL, snapshots: ALL });
