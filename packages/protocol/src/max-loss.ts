import { z } from "zod";
import { parseDurationMs } from "./duration.ts";
import { durationSchema } from "./http/common.ts";

/**
 * How much of a sandbox's work may be lost when its server dies: a time such as `5m`, or a number of finished
 * executions. Checkpoints while the sandbox runs keep the promise.
 */
export const maxLossSchema = z
  .union([z.number().int().min(1).max(1_000_000), durationSchema], {
    error: "must be a duration such as 5m, or a number of executions from 1 to 1000000",
  })
  .meta({ description: "A duration such as 5m, or a number of finished executions.", examples: ["5m", 10] });
export type MaxLoss = z.infer<typeof maxLossSchema>;

/** A parsed max_loss: one of the two. */
export type LossLimit = { readonly ms: number } | { readonly turns: number };

export function lossLimit(maxLoss: MaxLoss): LossLimit {
  return typeof maxLoss === "number" ? { turns: maxLoss } : { ms: parseDurationMs(maxLoss) };
}

/** Parses a text from flags and files; undefined: it is invalid. */
export function parseMaxLoss(text: string): MaxLoss | undefined {
  const given = /^[0-9]{1,7}$/.test(text) ? Number(text) : text;
  return maxLossSchema.safeParse(given).data;
}
