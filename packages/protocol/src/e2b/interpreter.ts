import { z } from "zod";
import { environmentSchema } from "../creation-message.ts";

/** The requests of E2B's code-interpreter clients to port 49999. Python's sends null for omitted fields. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value) => value ?? undefined);

export const e2bExecuteSchema = z.looseObject({
  code: z.string().max(1_000_000),
  context_id: optional(z.string().max(64)),
  language: optional(z.string().max(64)),
  env_vars: optional(environmentSchema),
});

export const e2bContextSchema = z.looseObject({
  language: optional(z.string().max(64)),
  cwd: optional(z.string().startsWith("/").max(160)),
});
