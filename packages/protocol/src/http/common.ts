import { z } from "zod";
import { DURATION_HINT, tryParseDurationMs } from "../duration.ts";

export const timestampSchema = z.string().meta({ format: "date-time", description: "ISO 8601, UTC." });

/** `90s`, `4h`: stays a text, so that it can be shown as given. */
export const durationSchema = z
  .string()
  .refine((text) => tryParseDurationMs(text) !== undefined, `is not a duration. ${DURATION_HINT}`)
  .meta({ description: DURATION_HINT, examples: ["90s", "4h"] });

/** The effect of the end of a sandbox's lifetime. */
export const onExpirySchema = z.enum(["pause", "delete"]).meta({
  description:
    "When the lifetime ends: pause the sandbox, which stays until it is deleted (default), or delete it with its checkpoints.",
});
export type OnExpiry = z.infer<typeof onExpirySchema>;

/** Whether other servers resume a sandbox after its server died. */
export const restartSchema = z.enum(["never", "always"]).meta({
  description:
    "If the sandbox's server dies: wait until somebody resumes it (never, the default), or let another server resume it from its newest checkpoint at once (always).",
});
export type Restart = z.infer<typeof restartSchema>;

/** A name given by people: shown in lists, never a path. */
export const nameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
    "is not a valid name: use up to 128 letters, digits, dots, dashes and underscores, beginning with a letter or a digit",
  );

/** Names and texts with limits on their number and total size. */
export function boundedRecord<Key extends z.ZodType<string, string>>(
  key: Key,
  value: z.ZodType<string, string>,
  { entries, kib }: { readonly entries: number; readonly kib: number },
) {
  const encoder = new TextEncoder();
  return z
    .record(key, value)
    .refine((record) => Object.keys(record).length <= entries, `has more than ${entries} entries`)
    .refine((record) => {
      const texts = Object.entries(record).flat().join("");
      return encoder.encode(texts).length <= kib * 1024;
    }, `has more than ${kib} KiB`);
}

/** In a request. */
export const labelsSchema = boundedRecord(z.string().min(1).max(128), z.string().max(1024), { entries: 64, kib: 64 });

/** In a record, which may be older than the limits. */
export const shownLabelsSchema = z.record(z.string(), z.string());

/** Named values for a profile. */
export const inputsSchema = boundedRecord(z.string().min(1).max(128), z.string().max(65_536), {
  entries: 64,
  kib: 256,
});

export const MAX_PAGE = 1000;

/** Lists come in pages: `next_cursor` of one is the `cursor` of the next. */
export const pageQuerySchema = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(100),
  cursor: z.string().max(1024).optional(),
});

/** `label=team=ml`, repeatable: all must match. */
export const labelFilterSchema = z
  .union([z.string(), z.array(z.string())])
  .transform((given) => (typeof given === "string" ? [given] : given))
  .pipe(z.array(z.string().regex(/^[^=]+(=.*)?$/, "is not KEY or KEY=VALUE")))
  .optional();

/** Booleans in a query: `true`, `1` and an empty value mean yes. */
export const flagSchema = z
  .union([z.boolean(), z.enum(["true", "false", "1", "0", ""])])
  .transform((value) => value === true || value === "true" || value === "1" || value === "");

export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable() });
}

export const errorBodySchema = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      hint: z.string(),
      retryable: z.boolean(),
      details: z.record(z.string(), z.unknown()),
    }),
  })
  .meta({ id: "Error" });
export type ErrorBody = z.infer<typeof errorBodySchema>;
