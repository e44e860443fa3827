import { z } from "zod";
import { timestampSchema } from "./common.ts";

/** The languages of code interpreters. */
export const CONTEXT_LANGUAGES = ["python", "javascript", "typescript", "bash"] as const;
export const contextLanguageSchema = z.enum(CONTEXT_LANGUAGES);
export type ContextLanguage = z.infer<typeof contextLanguageSchema>;

/** An interpreter in a sandbox, with the variables that its cells made. */
export const contextRecordSchema = z
  .object({
    id: z.string().meta({ description: "The default context of a language has the language's name." }),
    language: contextLanguageSchema,
    cwd: z.string().nullable().meta({ description: "The folder that it started in; null: the sandbox's default." }),
    state: z.enum(["idle", "busy", "exited"]).meta({ description: "exited: its variables are lost; restart it." }),
    pid: z.number().int(),
    started_at: timestampSchema.nullable().meta({ description: "null: unknown." }),
  })
  .meta({ id: "InterpreterContext" });
export type ContextRecord = z.infer<typeof contextRecordSchema>;

const scalarSchema = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** The first rows of a data frame. */
export const cellTableSchema = z.object({
  columns: z.array(z.string()),
  rows: z.array(z.array(scalarSchema)),
  row_count: z.number().int(),
  column_count: z.number().int(),
});
export type CellTable = z.infer<typeof cellTableSchema>;

const text = z.string().optional();
const base64 = z.string().optional().meta({ description: "Base64." });

/** One value in all formats that it has. The sandbox chose them: treat every one as untrusted data. */
export const cellResultSchema = z
  .object({
    main: z.boolean().meta({ description: "The value of the cell's last expression." }),
    text,
    html: text,
    markdown: text,
    svg: text,
    png: base64,
    jpeg: base64,
    pdf: base64,
    latex: text,
    json: z.unknown().optional(),
    javascript: text,
    table: cellTableSchema.optional(),
    chart: z.record(z.string(), z.unknown()).optional().meta({
      description:
        "The data of a figure: `type` (line, scatter, bar, pie, box_and_whisker, superchart), `title`, `elements`.",
    }),
    extra: z.record(z.string(), z.unknown()).optional().meta({ description: "Other formats, by their media type." }),
    omitted: z.array(z.string()).optional().meta({ description: "Formats that are too large." }),
  })
  .meta({ id: "CellResult" });
export type CellResult = z.infer<typeof cellResultSchema>;

/** An exception that ended a cell. */
export const cellExceptionSchema = z.object({ name: z.string(), value: z.string(), traceback: z.string() });
export type CellException = z.infer<typeof cellExceptionSchema>;

export const cellStatusSchema = z.enum(["ok", "error", "interrupted", "died"]).meta({
  description: "died: the interpreter ended during the cell, with its variables.",
});
export type CellStatus = z.infer<typeof cellStatusSchema>;

const identity = { context_id: z.string(), cell_id: z.string() };
const offset = z.number().int().meta({ description: "Where to continue reading after this line." });
const exit = {
  exit_code: z.number().int().nullable().meta({ description: "The exit code of an interpreter that died." }),
  signal: z.string().nullable(),
};

/** A cell with all its output. */
export const cellAnswerSchema = z
  .object({
    ...identity,
    execution_count: z.number().int(),
    status: cellStatusSchema,
    stdout: z.string(),
    stderr: z.string(),
    results: z.array(cellResultSchema),
    exception: cellExceptionSchema.nullable(),
    truncated: z.boolean().meta({ description: "There was more output than `max_output_bytes`." }),
    timed_out: z.boolean(),
    ...exit,
    elapsed_ms: z.number(),
  })
  .meta({ id: "CellAnswer" });
export type CellAnswer = z.infer<typeof cellAnswerSchema>;

/** The lines of a streamed cell. */
export const cellLineSchema = z.discriminatedUnion("event", [
  z.object({
    event: z.literal("started"),
    ...identity,
    execution_count: z.number().int(),
    /** Whether this request started the interpreter: it has no variables yet. */
    fresh: z.boolean(),
    offset,
  }),
  /** The first line when a cell is followed again. */
  z.object({ event: z.literal("following"), ...identity, offset }),
  z.object({ event: z.enum(["stdout", "stderr"]), data: z.string(), time: z.string(), offset }),
  z.object({ event: z.literal("result"), result: cellResultSchema, offset }),
  z.object({ event: z.literal("exception"), ...cellExceptionSchema.shape, offset }),
  /** The last line. */
  z.object({
    event: z.literal("end"),
    status: cellStatusSchema,
    execution_count: z.number().int(),
    timed_out: z.boolean(),
    ...exit,
    offset,
  }),
  /** The last line when the sandbox is saved or moved: resume it and follow the cell from here. */
  z.object({ event: z.literal("moving"), ...identity, offset }),
  z.object({ event: z.literal("error"), code: z.string(), message: z.string(), hint: z.string() }),
]);
export type CellLine = z.infer<typeof cellLineSchema>;
