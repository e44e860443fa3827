import { z } from "zod";
import { KEEP_MOST, keepsSomething } from "./keep-text.ts";

const count = z.number().int().min(0).max(KEEP_MOST);

/**
 * The saved states of a sandbox that are kept: the newest ones, and the newest of each of the last hours and days that
 * have any, in UTC. A state that any of the three keeps is kept. Times are those of the capture.
 */
export const keepSchema = z
  .strictObject({ keep_last: count.optional(), hourly: count.optional(), daily: count.optional() })
  .refine(keepsSomething, { message: "keeps nothing: give keep_last, hourly or daily of at least 1" })
  .meta({ id: "Keep", examples: [{ keep_last: 3, hourly: 24, daily: 7 }] });
export type Keep = z.infer<typeof keepSchema>;

/** The retention of a sandbox. Missing parts use the server's default. */
export const retentionSchema = z
  .strictObject({
    checkpoints: keepSchema.optional(),
    /** For unnamed snapshots that are not pinned. */
    snapshots: keepSchema.optional(),
  })
  .meta({ id: "Retention" });
export type Retention = z.infer<typeof retentionSchema>;

const ALL: Keep = { keep_last: KEEP_MOST };

/** The stored form: an unknown rule of a later release may keep more, so everything is kept. */
export const storedRetentionSchema = retentionSchema.nullable().catch({ checkpoints: ALL, snapshots: ALL });
