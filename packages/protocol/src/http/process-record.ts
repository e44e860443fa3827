import { z } from "zod";

export const PROCESS_STATES = ["running", "exited"] as const;

export const processRecordSchema = z
  .object({
    id: z.string(),
    pid: z.number().int(),
    state: z.enum(PROCESS_STATES),
    /** Null for one whose start this server did not see. */
    command: z.array(z.string()).nullable(),
    exit_code: z.number().int().nullable(),
    signal: z.string().nullable(),
    pty: z.boolean(),
    detached: z.boolean(),
    /** Offsets count the bytes of both streams together. */
    output_end: z.number().int().nullable(),
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
    /** There was more output than `max_output_bytes`; the rest was dropped. */
    truncated: z.boolean(),
    timed_out: z.boolean(),
    elapsed_ms: z.number(),
  })
  .meta({ id: "ExecResult" });
export type ExecResult = z.infer<typeof execResultSchema>;

/** The lines of a streamed exec (`Accept: application/x-ndjson`). */
export const execLineSchema = z.discriminatedUnion("event", [
  z.object({ event: z.literal("started"), process_id: z.string(), pid: z.number().int() }),
  z.object({
    event: z.enum(["stdout", "stderr"]),
    data: z.string(),
    encoding: z.enum(["utf8", "base64"]),
    /** The offset after the last byte of `data`. */
    offset: z.number().int(),
  }),
  z.object({
    event: z.literal("exit"),
    exit_code: z.number().int().nullable(),
    signal: z.string().nullable(),
    offset: z.number().int(),
    timed_out: z.boolean(),
  }),
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
