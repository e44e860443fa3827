import { z } from "zod";
import { environmentSchema } from "../../creation-message.ts";
import { languageSchema } from "../../client-message.ts";
import { flagSchema, pageOf } from "../common.ts";
import {
  execResultSchema,
  outputEncodingSchema,
  processRecordSchema,
  processTableEntrySchema,
  ptySchema,
  signalSchema,
} from "../process-record.ts";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "processes";
const processParams = sandboxParams.extend({ process_id: z.string().min(1).max(256) });
const NDJSON = { stream: "application/x-ndjson" } as const;

/** What to run: an argv, a line for the shell, or code in a language. */
export const execRequestSchema = z
  .strictObject({
    command: z.array(z.string()).min(1).max(4096).optional(),
    shell: z.string().min(1).max(1_000_000).optional(),
    language: languageSchema.optional(),
    code: z.string().max(1_000_000).optional(),
    env: environmentSchema.optional(),
    cwd: z.string().startsWith("/").max(4096).optional(),
    stdin: z.string().max(1_000_000).optional().meta({ description: "Written at the start; then stdin is closed." }),
    pty: ptySchema.optional(),
    timeout: z.number().positive().max(86_400).optional().meta({ description: "Seconds; then it is killed." }),
    detach: z
      .boolean()
      .default(false)
      .meta({ description: "Answer at once; old output that nobody reads is dropped, so that it never blocks." }),
    wait: z
      .boolean()
      .default(true)
      .meta({ description: "false: answer at once with the process; its output is kept until it was read." }),
    max_output_bytes: z
      .number()
      .int()
      .min(0)
      .max(67_108_864)
      .default(10_485_760)
      .meta({ description: "Of a collected answer; the rest is read and dropped." }),
    on_disconnect: z
      .enum(["keep", "kill"])
      .default("keep")
      .meta({ description: "What becomes of the process when the client goes away before the answer is complete." }),
  })
  .refine(
    ({ command, shell, code, language }) =>
      [command, shell, code].filter((given) => given !== undefined).length === 1 &&
      (code === undefined) === (language === undefined),
    "Give exactly one of command, shell, or code with its language.",
  )
  .meta({ id: "Exec" });
export type ExecRequestBody = z.infer<typeof execRequestSchema>;

export const PROCESS_ROUTES = {
  exec: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/exec",
    summary: "Run a command; collected, or streamed as lines of JSON. With detach or without wait: the process.",
    tag,
    scope: "use",
    params: sandboxParams,
    query: z.object({
      encoding: outputEncodingSchema.optional().meta({
        description: "Of a collected answer; absent: each stream as utf8 where it is text, else in base64.",
      }),
    }),
    body: execRequestSchema,
    status: 200,
    response: z.union([execResultSchema, processRecordSchema]),
    alternatives: [NDJSON],
    idempotent: true,
    rememberedBySandbox: true,
    fenced: true,
  }),
  listProcesses: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/processes",
    summary: "The processes that were started over this interface, oldest first.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: pageOf(processRecordSchema),
  }),
  getProcess: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/processes/{process_id}",
    summary: "One process.",
    tag,
    scope: "read",
    params: processParams,
    status: 200,
    response: processRecordSchema,
  }),
  processTable: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/process-table",
    summary: "Every process inside, whoever started it.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: pageOf(processTableEntrySchema),
  }),
  processOutput: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/processes/{process_id}/output",
    summary: "Its output from an offset, as lines of JSON; with follow until its end.",
    tag,
    scope: "read",
    params: processParams,
    query: z.object({
      offset: z.coerce.number().int().nonnegative().optional(),
      follow: flagSchema.optional(),
      acknowledge: flagSchema
        .optional()
        .meta({ description: "Without follow: what is before the offset was received and may be dropped." }),
      encoding: outputEncodingSchema.default("utf8"),
    }),
    status: 200,
    response: NDJSON,
  }),
  writeStdin: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/processes/{process_id}/stdin",
    summary: "Bytes to its stdin; close=true ends it after them.",
    tag,
    scope: "use",
    params: processParams,
    query: z.object({ close: flagSchema.optional() }),
    body: { stream: "application/octet-stream" },
    status: 204,
    fenced: true,
  }),
  signalProcess: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/processes/{process_id}/signal",
    summary: "Send it a signal; to its whole group unless told otherwise.",
    tag,
    scope: "use",
    params: processParams,
    body: z.strictObject({
      signal: signalSchema,
      scope: z.enum(["process", "group"]).default("group"),
    }),
    status: 204,
    fenced: true,
  }),
  resizeProcess: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/processes/{process_id}/resize",
    summary: "Tell its terminal a new size.",
    tag,
    scope: "use",
    params: processParams,
    body: ptySchema,
    status: 204,
    fenced: true,
  }),
  releaseProcess: route({
    method: "DELETE",
    path: "/v1/sandboxes/{id}/processes/{process_id}",
    summary: "Kill it if it runs, and drop its record and output.",
    tag,
    scope: "use",
    params: processParams,
    status: 204,
    fenced: true,
  }),
} as const;

/** A WebSocket, not in the table: `GET {this}?offset=N` with an upgrade; frames as in docs/reference/http-processes.md. */
export const PROCESS_ATTACH_PATH = "/v1/sandboxes/{id}/processes/{process_id}/attach";
