import { z } from "zod";
import { environmentSchema, userSchema } from "../../creation-message.ts";
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
const savedSchema = flagSchema.optional().meta({
  description: "If the sandbox is paused: answer from its checkpoint, instead of 409 wrong_state.",
});
const NDJSON = { stream: "application/x-ndjson" } as const;

/** The program: an argv, a line for the shell, or code in a language. */
export const execRequestSchema = z
  .strictObject({
    command: z.array(z.string()).min(1).max(4096).optional(),
    shell: z.string().min(1).max(1_000_000).optional(),
    language: languageSchema.optional(),
    code: z.string().max(1_000_000).optional(),
    env: environmentSchema.optional(),
    cwd: z.string().startsWith("/").max(4096).optional(),
    user: userSchema.optional().meta({
      description: "Run as this user inside: NAME, UID, NAME:GROUP or UID:GID. Default: the sandbox's user.",
    }),
    stdin: z
      .string()
      .max(1_000_000)
      .optional()
      .meta({ description: "Written to stdin at the start; then stdin is closed." }),
    pty: ptySchema.optional(),
    timeout: z
      .number()
      .positive()
      .max(86_400)
      .optional()
      .meta({ description: "Seconds after which the process is killed." }),
    detach: z.boolean().default(false).meta({
      description: "Return immediately. The oldest unread output is dropped, so that the process never blocks.",
    }),
    wait: z
      .boolean()
      .default(true)
      .meta({ description: "false: return the process immediately; its output is kept until it is read." }),
    max_output_bytes: z
      .number()
      .int()
      .min(0)
      .max(67_108_864)
      .default(10_485_760)
      .meta({ description: "Maximum output in a collected response; the rest is read and dropped." }),
    on_disconnect: z.enum(["keep", "kill"]).default("keep").meta({
      description: "Whether the process is killed or kept when the client disconnects before the response is complete.",
    }),
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
    summary:
      "Run a command. Returns the collected output or a stream of JSON lines; with detach or wait=false, the process.",
    tag,
    scope: "use",
    params: sandboxParams,
    query: z.object({
      encoding: outputEncodingSchema.optional().meta({
        description: "Encoding of a collected response. Default: utf8 for each stream that is text, otherwise base64.",
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
    summary: "List processes that were started with this API, oldest first.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({ saved: savedSchema }),
    status: 200,
    response: pageOf(processRecordSchema),
  }),
  getProcess: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/processes/{process_id}",
    summary: "Get a process.",
    tag,
    scope: "read",
    params: processParams,
    query: z.object({ saved: savedSchema }),
    status: 200,
    response: processRecordSchema,
  }),
  processTable: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/process-table",
    summary: "List every process in the sandbox.",
    tag,
    scope: "read",
    params: sandboxParams,
    status: 200,
    response: pageOf(processTableEntrySchema),
  }),
  processOutput: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/processes/{process_id}/output",
    summary: "Read the output of a process from an offset, as JSON lines; with follow, until it ends.",
    tag,
    scope: "read",
    params: processParams,
    query: z.object({
      offset: z.coerce.number().int().nonnegative().optional(),
      follow: flagSchema.optional(),
      acknowledge: flagSchema.optional().meta({
        description: "Without follow: acknowledge the output before the offset, so that the server may drop it.",
      }),
      encoding: outputEncodingSchema.default("utf8"),
      saved: savedSchema,
    }),
    status: 200,
    response: NDJSON,
  }),
  writeStdin: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/processes/{process_id}/stdin",
    summary: "Write bytes to stdin; close=true closes stdin afterwards.",
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
    summary: "Send a signal to a process; by default to its whole process group.",
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
    summary: "Resize the terminal of a process.",
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
    summary: "Kill a process if it runs, and delete its record and output.",
    tag,
    scope: "use",
    params: processParams,
    status: 204,
    fenced: true,
  }),
} as const;

/** A WebSocket, not in the table: `GET {this}?offset=N` with an upgrade; frames as in docs/reference/http-processes.md. */
export const PROCESS_ATTACH_PATH = "/v1/sandboxes/{id}/processes/{process_id}/attach";
