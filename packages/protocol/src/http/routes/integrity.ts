import { z } from "zod";
import { integrityReportSchema, provenCheckpointSchema, scrubStatusSchema } from "../integrity-record.ts";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "integrity";

export const INTEGRITY_ROUTES = {
  verifySnapshot: route({
    method: "POST",
    path: "/v1/snapshots/{id}/verify",
    summary: "Check every block of a snapshot and list damage with all images that it affects.",
    tag,
    scope: "use",
    params: z.object({ id: z.string().min(1).max(128).meta({ description: "Id or name." }) }),
    status: 200,
    response: integrityReportSchema,
    operation: "verify",
  }),
  verifySandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/verify",
    summary: "Check every block of all checkpoints of a sandbox, or of one.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        checkpoint: z.string().max(128).optional().meta({ description: "Default: all stored checkpoints." }),
      })
      .optional(),
    status: 200,
    response: integrityReportSchema,
    operation: "verify",
  }),
  proveSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/prove",
    summary: "Test-restore a checkpoint in isolation, then discard the copy.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        checkpoint: z.string().max(128).optional().meta({ description: "Default: the newest." }),
      })
      .optional(),
    status: 200,
    response: provenCheckpointSchema,
    operation: "prove",
  }),
  scrubStore: route({
    method: "POST",
    path: "/v1/scrub",
    summary: "Check all data in the store. Only one scrub runs at a time; it continues where the last one stopped.",
    tag,
    scope: "admin",
    body: z
      .strictObject({
        rate_mb: z.number().nonnegative().max(1_000_000).nullable().optional().meta({
          description: "Read at most this many MB per second; 0 or null: no limit. Default: the server's setting.",
        }),
      })
      .optional(),
    status: 200,
    response: integrityReportSchema,
    operation: "scrub",
  }),
  scrubStatus: route({
    method: "GET",
    path: "/v1/scrub",
    summary: "Show whether a scrub is running, when the last one ended and what it found.",
    tag,
    scope: "read",
    status: 200,
    response: scrubStatusSchema,
  }),
  stopScrub: route({
    method: "DELETE",
    path: "/v1/scrub",
    summary: "Stop the running scrub; the next one continues where it stopped.",
    tag,
    scope: "admin",
    status: 204,
  }),
} as const;
