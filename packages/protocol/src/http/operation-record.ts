import { z } from "zod";
import { timestampSchema } from "./common.ts";

export const OPERATION_KINDS = [
  "create",
  "acquire",
  "checkpoint",
  "resume",
  "snapshot",
  "prove",
  "verify",
  "scrub",
  "restore",
  "fork",
  "rewind",
  "promote",
  "move",
  "handoff",
  "recreate",
  "destroy",
  "pull",
] as const;

/**
 * An operation that takes a while. The same record feeds the response, the CLI's progress bar, the console and the
 * event log.
 */
export const operationRecordSchema = z
  .object({
    id: z.string(),
    kind: z.enum(OPERATION_KINDS),
    state: z.enum(["running", "done", "failed"]),
    sandbox_id: z.string().nullable(),
    snapshot_id: z.string().nullable(),
    /** The current phase. */
    phase: z.string().nullable(),
    /** Milliseconds of each finished phase. */
    phases: z.record(z.string(), z.number()),
    done_bytes: z.number().int().nullable(),
    total_bytes: z.number().int().nullable(),
    started_at: timestampSchema,
    ended_at: timestampSchema.nullable(),
    elapsed_ms: z.number(),
    paused_ms: z.number().nullable().meta({
      description:
        "Milliseconds for which the processes inside were stopped, as measured by this server; null: none, or unknown.",
    }),
    error: z.object({ code: z.string(), message: z.string(), hint: z.string() }).nullable(),
    /** The response that the call would have had. */
    result: z.unknown(),
  })
  .meta({ id: "Operation" });
export type OperationRecordBody = z.infer<typeof operationRecordSchema>;
export type OperationKind = (typeof OPERATION_KINDS)[number];

/** One line of the event log. `cursor` is the position to continue from; `data` depends on `type`. */
export const eventRecordSchema = z
  .object({
    cursor: z.string(),
    time: timestampSchema,
    type: z.string().meta({ examples: ["sandbox.state", "sandbox.created", "operation", "execution"] }),
    sandbox_id: z.string().nullable(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "Event" });
export type EventRecord = z.infer<typeof eventRecordSchema>;
