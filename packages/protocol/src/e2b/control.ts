import { z } from "zod";
import { environmentSchema } from "../creation-message.ts";
import { labelsSchema } from "../http/common.ts";

/**
 * Requests of E2B's control plane, as E2B's clients send them. Clients of other versions may send more: unknown fields
 * are taken, and those that ask for something that the server does not have are refused by name. Python's client sends
 * nulls and empty maps for what its user left out.
 */
const MAX_SECONDS = 10 * 365 * 86_400;

/** Seconds from now. A negative time has passed. */
const timeoutSchema = z
  .number()
  .int()
  .max(MAX_SECONDS)
  .transform((seconds) => Math.max(0, seconds));

const hostsSchema = z.array(z.string().max(1024)).max(1024);

/** The fields that change the network; of a new sandbox, and of one that exists. */
const networkShape = {
  allowOut: hostsSchema.nullish(),
  denyOut: hostsSchema.nullish(),
};

/** Loose: options of later clients are refused by name, because a client must not believe that they protect it. */
export const e2bNetworkUpdateSchema = z.looseObject({ ...networkShape, allow_internet_access: z.boolean().nullish() });
export type E2bNetworkUpdate = z.infer<typeof e2bNetworkUpdateSchema>;

export const e2bNewSandboxSchema = z.object({
  templateID: z.string().min(1).max(4096),
  timeout: timeoutSchema.nullish(),
  metadata: labelsSchema.nullish(),
  envVars: environmentSchema.nullish(),
  autoPause: z.boolean().nullish(),
  autoPauseMemory: z.boolean().nullish(),
  autoResume: z.strictObject({ enabled: z.boolean().nullish() }).nullish(),
  allow_internet_access: z.boolean().nullish(),
  network: z.looseObject({ ...networkShape, allowPublicTraffic: z.boolean().nullish() }).nullish(),
  /** Every sandbox has a token. */
  secure: z.boolean().nullish(),
  mcp: z.unknown().optional(),
  iam: z.unknown().optional(),
  volumeMounts: z.unknown().optional(),
});
export type E2bNewSandbox = z.infer<typeof e2bNewSandboxSchema>;

export const e2bConnectSchema = z.object({ timeout: timeoutSchema.nullish(), memory: z.boolean().nullish() });
export const e2bResumeSchema = e2bConnectSchema.extend({ autoPause: z.boolean().nullish() });
export const e2bTimeoutSchema = z.object({ timeout: timeoutSchema });
export const e2bRefreshSchema = z.object({ duration: timeoutSchema.nullish() });
/** `requireHealthyGuest` is always true here: a sandbox whose agent does not answer cannot be saved. */
export const e2bPauseSchema = z.object({ memory: z.boolean().nullish() });

const MAX_FORKS = 100;
export const e2bForkSchema = z.object({
  timeout: timeoutSchema.nullish(),
  count: z.number().int().min(1).max(MAX_FORKS).nullish(),
});

export const e2bNewSnapshotSchema = z.object({
  name: z.string().max(256).nullish(),
  memory: z.boolean().nullish(),
});

const MAX_PAGE = 100;
const pageShape = {
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
  nextToken: z.string().max(1024).optional(),
};

export const e2bListSchema = z.object({
  ...pageShape,
  metadata: z.string().optional(),
  state: z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat().flatMap((text) => text.split(",")))
    .pipe(z.array(z.enum(["running", "paused"])))
    .optional(),
  startedAfter: z
    .string()
    .refine((text) => !Number.isNaN(Date.parse(text)), "must be a time, such as 2026-01-31T12:00:00Z")
    .optional(),
  template: z.string().max(4096).optional(),
  order: z.enum(["asc", "desc"]).default("desc"),
});
export type E2bList = z.infer<typeof e2bListSchema>;

export const e2bListSnapshotsSchema = z.object({
  ...pageShape,
  sandboxID: z.string().optional(),
  name: z.string().max(256).optional(),
});

/** Seconds since 1970. */
export const e2bMetricsSchema = z.object({ start: z.coerce.number().optional(), end: z.coerce.number().optional() });
