import { z } from "zod";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "usage";

/** Columns of equal length, oldest first, as plots need them. */
const usageColumnsSchema = z.object({
  time: z.array(z.number()).meta({ description: "Seconds since 1970, UTC." }),
  memory_bytes: z.array(z.number().int()),
  disk_bytes: z.array(z.number().int()),
  cpus: z.array(z.number().nullable()).meta({
    description: "CPUs used since the previous point; null if unknown.",
  }),
});
export type UsageColumns = z.infer<typeof usageColumnsSchema>;

const sandboxUsageSchema = z
  .object({
    sandbox_id: z.string(),
    used: usageColumnsSchema,
    limits: z
      .object({
        cpus: z.number().nullable(),
        memory_bytes: z.number().int().nullable(),
        disk_bytes: z.number().int().nullable(),
      })
      .meta({ description: "null: none, or unknown." }),
  })
  .meta({ id: "SandboxUsage" });
export type SandboxUsage = z.infer<typeof sandboxUsageSchema>;

const sinceSchema = z.coerce
  .number()
  .optional()
  .meta({ description: "Only points newer than this, in seconds since 1970." });

export const USAGE_ROUTES = {
  listUsage: route({
    method: "GET",
    path: "/v1/usage",
    summary: "Get the newest resource usage points of every sandbox of this server.",
    tag,
    scope: "read",
    query: z.object({ points: z.coerce.number().int().min(1).max(150).default(30), since: sinceSchema }),
    status: 200,
    response: z.object({ items: z.array(z.object({ sandbox_id: z.string(), used: usageColumnsSchema })) }),
  }),
  sandboxUsage: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/usage",
    summary: "Get the resource usage of a sandbox in the last half hour, and its limits.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({ since: sinceSchema }),
    status: 200,
    response: sandboxUsageSchema,
  }),
} as const;
