import { z } from "zod";

/**
 * The fields of the daemon's responses that are read; `test/backends/daytona/vendor-types.test.ts` compares them with
 * the vendor's types.
 */
export const executeSchema = z.object({ exitCode: z.number().int().optional(), result: z.string() });
export const workFolderSchema = z.object({ dir: z.string() });
export const commandSchema = z.object({ id: z.string(), exitCode: z.number().int().nullish() });
export const sessionSchema = z.object({ sessionId: z.string(), commands: z.array(commandSchema).nullish() });
export const sessionsSchema = z.array(sessionSchema);
export const startedSchema = z.object({ cmdId: z.string().min(1) });
export const ptySchema = z.object({ sessionId: z.string().min(1) });
export const metricsSchema = z.object({ memUsed: z.number().optional(), diskUsed: z.number().optional() });
export const fileInfoSchema = z.object({
  name: z.string(),
  isDir: z.boolean(),
  mode: z.string(),
  permissions: z.string(),
  size: z.number(),
  modifiedAt: z.string().optional(),
  owner: z.string(),
  group: z.string(),
});

export type ToolboxFile = z.output<typeof fileInfoSchema>;
