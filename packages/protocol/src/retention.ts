import { z } from "zod";

const count = z.number().int().min(0).max(1_000_000);

/**
 * Which saved states of a sandbox stay: the newest ones, and the newest of each of the last hours and days that have any,
 * by UTC. What any of the three keeps stays. Times are those at which the states were captured.
 */
export const keepSchema = z
  .strictObject({ keep_last: count.optional(), hourly: count.optional(), daily: count.optional() })
  .refine(({ keep_last = 0, hourly = 0, daily = 0 }) => keep_last + hourly + daily > 0, {
    message: "keeps nothing: give keep_last, hourly or daily of at least 1",
  })
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

const ALL: Keep = { keep_last: 1_000_000 };

/** As it is stored: a rule that this release does not know may keep more than those that it knows, so that all stays. */
export const storedRetentionSchema = retentionSchema
  .nullable()
  .default(null)
  .catch({ checkpoints: ALL, snapshots: ALL });

const NAMES = { last: "keep_last", hourly: "hourly", daily: "daily" } as const;

/** Of a text, as flags and files have it: `3`, or `last=3,hourly=24,daily=7`. Undefined: it is none. */
export function parseKeep(text: string): Keep | undefined {
  if (/^[0-9]{1,7}$/.test(text)) return keepSchema.safeParse({ keep_last: Number(text) }).data;
  const keep: Record<string, number> = {};
  for (const part of text.split(",")) {
    const [, word = "", digits] = /^ *([a-z]+)=([0-9]{1,7}) *$/.exec(part) ?? [];
    const name = Object.hasOwn(NAMES, word) ? NAMES[word as keyof typeof NAMES] : undefined;
    if (name === undefined || Object.hasOwn(keep, name)) return undefined;
    keep[name] = Number(digits);
  }
  return keepSchema.safeParse(keep).data;
}

/** As {@link parseKeep} takes it. */
export function formatKeep(keep: Keep): string {
  const parts = Object.entries(NAMES).flatMap(([word, name]) =>
    keep[name] === undefined ? [] : [`${word}=${keep[name]}`],
  );
  return parts.join(",");
}
