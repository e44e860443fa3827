import { z } from "zod";

/**
 * Limits of stored records. They are far beyond what a server writes, and keep a forged record from breaking a response
 * or a calculation.
 */

/** An epoch grows by one with each change of owner. */
const LARGEST_EPOCH = 1e12;
export const storedEpochSchema = z.number().int().positive().max(LARGEST_EPOCH);

/** 16 TiB: sums of many are still exact. */
export const storedSizeSchema = z
  .number()
  .int()
  .nonnegative()
  .max(2 ** 44);

/** A counter, such as the copies of a sandbox, whose ids have nine digits for it. */
export const storedCountSchema = z.number().int().nonnegative().max(999_999_999);

/** Seconds, up to ten years as in requests. */
export const storedSecondsSchema = z.number().nonnegative().max(315_360_000);

/** A name, an id, a URL: something that is shown or compared. */
export const storedTextSchema = z.string().max(4096);

/** A sentence or more, written for people. */
export const storedMessageSchema = z.string().max(65_536);

/** ISO 8601; without spaces, because times are parts of cursors. */
export const storedTimeSchema = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}\S{0,40}$/, "is not a time")
  .refine((text) => !Number.isNaN(Date.parse(text)), "is not a time");

/** Names and texts, such as labels: 1 MiB together. */
export const storedWordsSchema = z
  .record(storedTextSchema, storedMessageSchema)
  .refine((record) => Object.entries(record).flat().join("").length <= 1024 * 1024, "has more than 1 MiB");
