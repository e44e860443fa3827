import { z } from "zod";

export const PROCESS_STATES = ["running", "exited"] as const;

export const outputEncodingSchema = z.enum(["utf8", "base64"]);

export const ptySchema = z.strictObject({
  rows: z.number().int().min(1).max(1000),
  columns: z.number().int().min(1).max(1000),
});

/** By name, with or without `SIG`, or by its Linux number. */
export const signalSchema = z.union([
  z.string().regex(/^(SIG)?[A-Z][A-Z0-9]{1,9}$/, "is not a signal name, such as SIGTERM"),
  z.number().int().min(1).max(64),
]);

/** The hint for a failed process. */
export const hintSchema = z
  .string()
  .nullable()
  .meta({ description: "A next step for a failed process, such as one without a network; null: none is known." });

export const processRecordSchema = z
  .object({
    id: z.string(),
    pid: z.number().int(),
    state: z.enum(PROCESS_STATES),
    command: z.array(z.string()).nullable().meta({ description: "null: unknown." }),
    started_at: z.string().nullable().meta({ description: "null: unknown." }),
    exit_code: z.number().int().nullable(),
    signal: z.string().nullable(),
    pty: z.boolean(),
    detached: z.boolean(),
    /** Offsets count the bytes of both streams together. The oldest byte that can still be read, and the end so far. */
    output_start: z.number().int(),
    output_end: z.number().int(),
    /** Output before this was received by a reader and may be dropped. */
    acknowledged: z.number().int(),
  })
  .meta({ id: "Process" });
export type ProcessRecord = z.infer<typeof processRecordSchema>;

export const execResultSchema = z
  .object({
    process_id: z.string(),
    exit_code: z.number().int().nullable(),
    signal: z.string().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    /** The encoding of `stdout` and `stderr`: output that is not text is in base64. */
    stdout_encoding: outputEncodingSchema,
    stderr_encoding: outputEncodingSchema,
    /**
     * Output is missing: there was more than `max_output_bytes`, or a repeated request came after its beginning was
     * dropped.
     */
    truncated: z.boolean(),
    timed_out: z.boolean(),
    hint: hintSchema,
    elapsed_ms: z.number(),
  })
  .meta({ id: "ExecResult" });
export type ExecResult = z.infer<typeof execResultSchema>;

/** The lines of a streamed exec (`Accept: application/x-ndjson`). */
export const execLineSchema = z.discriminatedUnion("event", [
  z.object({
    event: z.literal("started"),
    process_id: z.string(),
    pid: z.number().int(),
    /** Where the output begins: later than requested if older bytes were dropped. */
    offset: z.number().int(),
  }),
  z.object({
    event: z.enum(["stdout", "stderr"]),
    data: z.string(),
    encoding: outputEncodingSchema,
    /** The offset after the last byte of `data`. */
    offset: z.number().int(),
  }),
  z.object({
    event: z.literal("exit"),
    exit_code: z.number().int().nullable(),
    signal: z.string().nullable(),
    offset: z.number().int(),
    timed_out: z.boolean(),
    hint: hintSchema,
  }),
  /** The last line of output without `follow`, while the process runs. */
  z.object({ event: z.literal("end"), offset: z.number().int() }),
  /** The last line when the sandbox is saved or moved: resume it and read the output from here. */
  z.object({ event: z.literal("moving"), process_id: z.string(), offset: z.number().int() }),
  z.object({
    event: z.literal("error"),
    code: z.string(),
    message: z.string(),
    hint: z.string(),
  }),
]);
export type ExecLine = z.infer<typeof execLineSchema>;

export const processTableEntrySchema = z.object({
  pid: z.number().int(),
  parent_pid: z.number().int(),
  uid: z.number().int(),
  state: z.string(),
  resident_bytes: z.number().int(),
  cpu_ms: z.number(),
  command: z.string(),
});

export const fileEntrySchema = z
  .object({
    name: z.string(),
    kind: z.enum(["file", "folder", "symlink", "other"]),
    mode: z.number().int(),
    uid: z.number().int(),
    gid: z.number().int(),
    size_bytes: z.number().int(),
    modified_at: z.string(),
    link_target: z.string().nullable(),
  })
  .meta({ id: "FileEntry" });
export type FileEntryRecord = z.infer<typeof fileEntrySchema>;
