import { z } from "zod";
import { environmentSchema } from "../../creation-message.ts";
import { pageOf } from "../common.ts";
import { cellAnswerSchema, contextLanguageSchema, contextRecordSchema } from "../interpreter-record.ts";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "interpreter";
const contextIdSchema = z.string().min(1).max(64);
const contextParams = sandboxParams.extend({ context_id: contextIdSchema });
const NDJSON = { stream: "application/x-ndjson" } as const;

export const cellRequestSchema = z
  .strictObject({
    code: z.string().max(1_000_000),
    context_id: contextIdSchema
      .optional()
      .meta({ description: "Default: the language's default context, which is started when it is needed." }),
    language: contextLanguageSchema.optional().meta({ description: "Default: python. Not with context_id." }),
    env: environmentSchema.optional().meta({ description: "Variables for this cell only." }),
    timeout: z.number().positive().max(86_400).optional().meta({
      description: "Seconds after which the cell is interrupted. If it does not stop, its interpreter is killed.",
    }),
    max_output_bytes: z.number().int().min(0).max(67_108_864).default(10_485_760).meta({
      description: "Maximum output and results in a collected response; the rest is read and dropped.",
    }),
    on_disconnect: z.enum(["interrupt", "keep"]).default("interrupt").meta({
      description: "Whether the cell is interrupted or kept when the client disconnects before its end.",
    }),
  })
  .refine(
    ({ context_id, language }) => context_id === undefined || language === undefined,
    "Give context_id or language, not both: a context has a language.",
  )
  .meta({ id: "Cell" });
export type CellRequestBody = z.infer<typeof cellRequestSchema>;

/** A path that fits into the facts that travel with the interpreter's process. */
const MAX_FOLDER_BYTES = 160;

export const INTERPRETER_ROUTES = {
  runCell: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/cells",
    summary: "Run code in an interpreter that keeps its variables. Returns everything, or a stream of JSON lines.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: cellRequestSchema,
    status: 200,
    response: cellAnswerSchema,
    alternatives: [NDJSON],
    fenced: true,
  }),
  followCell: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/contexts/{context_id}/cells/{cell_id}",
    summary: "Follow a cell that still runs, or whose output is still there, from an offset, as JSON lines.",
    tag,
    scope: "use",
    params: contextParams.extend({ cell_id: z.uuid() }),
    query: z.object({ offset: z.coerce.number().int().nonnegative().optional() }),
    status: 200,
    response: NDJSON,
  }),
  createContext: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/contexts",
    summary: "Start an interpreter with variables of its own.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({
      language: contextLanguageSchema.default("python"),
      cwd: z
        .string()
        .startsWith("/")
        .refine(
          (path) => !path.includes("\0") && new TextEncoder().encode(path).length <= MAX_FOLDER_BYTES,
          `has more than ${MAX_FOLDER_BYTES} bytes, or NUL`,
        )
        .optional(),
    }),
    status: 201,
    response: contextRecordSchema,
    fenced: true,
  }),
  listContexts: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/contexts",
    summary: "List the interpreters of a sandbox, oldest first.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: pageOf(contextRecordSchema),
  }),
  restartContext: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/contexts/{context_id}/restart",
    summary: "End an interpreter and start it again, without its variables.",
    tag,
    scope: "use",
    params: contextParams,
    status: 200,
    response: contextRecordSchema,
    fenced: true,
  }),
  interruptContext: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/contexts/{context_id}/interrupt",
    summary: "Interrupt the running cell, like Ctrl-C. Without one, nothing happens.",
    tag,
    scope: "use",
    params: contextParams,
    status: 204,
    fenced: true,
  }),
  deleteContext: route({
    method: "DELETE",
    path: "/v1/sandboxes/{id}/contexts/{context_id}",
    summary: "End an interpreter and delete its record.",
    tag,
    scope: "use",
    params: contextParams,
    status: 204,
    fenced: true,
  }),
} as const;
