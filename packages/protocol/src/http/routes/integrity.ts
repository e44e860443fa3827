import { z } from "zod";
import { integrityReportSchema, provenCheckpointSchema, scrubStatusSchema } from "../integrity-record.ts";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "integrity";

export const INTEGRITY_ROUTES = {
  verifySnapshot: route({
    method: "POST",
    path: "/v1/snapshots/{id}/verify",
    summary: "Read every block of a snapshot; what is damaged names all images that it hurts.",
    tag,
    scope: "use",
    params: z.object({ id: z.string().min(1).max(128).meta({ description: "An id, or a name." }) }),
    status: 200,
    response: integrityReportSchema,
    operation: "verify",
  }),
  verifySandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/verify",
    summary: "Read every block of a sandbox's stored checkpoints, or of one of them.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        checkpoint: z.string().max(128).optional().meta({ description: "Absent: all that are stored." }),
      })
      .optional(),
    status: 200,
    response: integrityReportSchema,
    operation: "verify",
  }),
  proveSandbox: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/prove",
    summary: "Restore a checkpoint of it where nobody can reach it, hear whether it answers, and end that.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z
      .strictObject({
        checkpoint: z.string().max(128).optional().meta({ description: "Absent: the newest." }),
      })
      .optional(),
    status: 200,
    response: provenCheckpointSchema,
    operation: "prove",
  }),
  scrubStore: route({
    method: "POST",
    path: "/v1/scrub",
    summary: "Read everything that is saved in the store; one at a time, and where the last one was stopped.",
    tag,
    scope: "admin",
    body: z
      .strictObject({
        rate_mb: z
          .number()
          .nonnegative()
          .max(1_000_000)
          .nullable()
          .optional()
          .meta({ description: "At most so many MB in a second; 0 or null: no limit. Absent: as the server is set." }),
      })
      .optional(),
    status: 200,
    response: integrityReportSchema,
    operation: "scrub",
  }),
  scrubStatus: route({
    method: "GET",
    path: "/v1/scrub",
    summary: "Whether a scrub is under way, when the last was, and what it found.",
    tag,
    scope: "read",
    status: 200,
    response: scrubStatusSchema,
  }),
  stopScrub: route({
    method: "DELETE",
    path: "/v1/scrub",
    summary: "Stop the scrub that is under way; the next one goes on where it was.",
    tag,
    scope: "admin",
    status: 204,
  }),
} as const;
