import { z } from "zod";

/**
 * The fields of a sandbox that this backend reads; unknown fields are ignored.
 * `test/backends/daytona/vendor-types.test.ts` checks that the vendor's types match.
 */
export const sandboxSchema = z.object({
  id: z.string().min(1),
  labels: z.record(z.string(), z.string()).nullish(),
  state: z.string().optional(),
  errorReason: z.string().nullish(),
  createdAt: z.string().optional(),
  updatedAt: z.string().optional(),
  lastActivityAt: z.string().nullish(),
  organizationId: z.string().optional(),
  toolboxProxyUrl: z.string().nullish(),
});

/** One page; the last has no cursor. https://www.daytona.io/docs/en/tools/api/#daytona/tag/sandbox/GET/sandbox */
export const sandboxPageSchema = z.object({
  items: z.array(sandboxSchema),
  nextCursor: z.string().nullish(),
});

export const snapshotSchema = z.object({
  id: z.string(),
  name: z.string(),
  state: z.string(),
  errorReason: z.string().nullish(),
});

export type DaytonaSandbox = z.output<typeof sandboxSchema>;
