import { z } from "zod";
import { affinitySchema } from "./http/affinity.ts";
import { boundedRecord, labelsSchema, restartSchema } from "./http/common.ts";
import { maxLossSchema } from "./max-loss.ts";
import { networkSettingSchema } from "./network/policy.ts";

const seconds = z
  .number()
  .finite()
  .nonnegative()
  .max(10 * 365 * 86_400);
const MIB = 1024 * 1024;

/** Limits of one sandbox; missing ones use the server's default. */
export const resourcesSchema = z.object({
  cpus: z.number().positive().max(1024).optional(),
  memory_mb: z.number().int().min(16).max(1_048_576).optional(),
  processes: z.number().int().min(4).max(32_768).optional(),
  disk_mb: z.number().int().min(1).max(16_777_216).optional(),
  file_mb: z.number().int().min(1).max(16_777_216).optional(),
});

export const environmentSchema = boundedRecord(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not a valid variable name"),
  z.string().refine((value) => !value.includes("\0"), "contains NUL"),
  { entries: 256, kib: 256 },
);

/** A user inside a sandbox: a name or a number, optionally with a group. */
export const userSchema = z
  .string()
  .max(256)
  .regex(/^[\w.][\w.@$-]*(:[\w.][\w.@$-]*)?$/, "must be a user, such as root, 1000 or www-data:www-data");

/**
 * The first message on `/create`. Unknown fields are ignored and logged. Missing ones are off, or come from the
 * profile.
 */
export const creationMessageSchema = z.object({
  idle_timeout: seconds.optional(),
  enable_checkpoint: z.boolean().optional(),
  enable_idle_timeout_auto_checkpoint: z.boolean().optional(),
  enable_sandbox_handoff: z.boolean().optional(),
  on_disconnect: z.enum(["keep", "checkpoint"]).optional(),
  max_loss: maxLossSchema.nullable().optional(),
  restart: restartSchema.optional(),
  affinity: affinitySchema.optional(),
  filesystem_snapshot_name: z.string().optional(),
  backend: z.string().optional(),
  profile: z.string().optional(),
  image: z.string().min(1).max(4096).optional(),
  user: userSchema.optional(),
  env: environmentSchema.optional(),
  labels: labelsSchema.optional(),
  resources: resourcesSchema.optional(),
  network: networkSettingSchema.optional(),
  /** Whether messages have fields that the original protocol does not have. On attach: `?extensions=1`. */
  extensions: z.boolean().optional(),
});
export type CreationMessage = z.infer<typeof creationMessageSchema>;

export const CREATION_FIELDS: readonly string[] = Object.keys(creationMessageSchema.shape);

/**
 * The inverse. A value that is not a whole number of MiB, or beyond the limits, is not a valid {@link resourcesSchema}.
 */
export function resourcesInMebibytes({
  cpus,
  memoryBytes,
  processes,
  diskBytes,
  fileBytes,
}: ReturnType<typeof resourcesInBytes>): z.infer<typeof resourcesSchema> {
  return {
    ...(cpus === undefined ? {} : { cpus }),
    ...(processes === undefined ? {} : { processes }),
    ...(memoryBytes === undefined ? {} : { memory_mb: memoryBytes / MIB }),
    ...(diskBytes === undefined ? {} : { disk_mb: diskBytes / MIB }),
    ...(fileBytes === undefined ? {} : { file_mb: fileBytes / MIB }),
  };
}

export function resourcesInBytes(resources: z.infer<typeof resourcesSchema>): {
  cpus?: number;
  memoryBytes?: number;
  processes?: number;
  diskBytes?: number;
  fileBytes?: number;
} {
  return {
    ...(resources.cpus === undefined ? {} : { cpus: resources.cpus }),
    ...(resources.processes === undefined ? {} : { processes: resources.processes }),
    ...(resources.memory_mb === undefined ? {} : { memoryBytes: resources.memory_mb * MIB }),
    ...(resources.disk_mb === undefined ? {} : { diskBytes: resources.disk_mb * MIB }),
    ...(resources.file_mb === undefined ? {} : { fileBytes: resources.file_mb * MIB }),
  };
}
