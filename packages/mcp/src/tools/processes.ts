import { languageSchema } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { z } from "zod";
import { OutputWindow } from "../output-window.ts";
import { readOutput, type Exit } from "../read-output.ts";
import { defineTool } from "../tool.ts";
import { budgetSchema, callsOf, given, idempotencyKey, requestIdSchema, sandboxIdSchema } from "./common.ts";

const processIdSchema = z.string().min(1).max(256).describe("From run or sandbox_info.");

const endSchema = {
  state: z.enum(["running", "exited"]),
  exit_code: z.number().int().nullable().describe("null: it runs, or a signal ended it."),
  signal: z.string().nullable(),
  timed_out: z.boolean(),
};

const run = defineTool({
  name: "run",
  title: "Run a command",
  core: true,
  description:
    "Run a shell command, or code in a language, and return its output. A command that takes longer than wait_seconds " +
    "keeps running: read on with process_read. The sandbox keeps files and programs between calls.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    command: z.string().min(1).max(1_000_000).optional().describe("A line for the shell."),
    language: languageSchema.optional().describe("Together with code, instead of command."),
    code: z.string().max(1_000_000).optional(),
    cwd: z.string().startsWith("/").max(4096).optional().describe("Default: the working folder of the sandbox."),
    env: z.record(z.string(), z.string()).optional(),
    user: z.string().max(256).optional().describe("A user inside, such as root."),
    stdin: z.string().max(1_000_000).optional().describe("Default: empty; in the background it stays open."),
    background: z.boolean().default(false).describe("Return at once, for servers and interactive programs."),
    wait_seconds: z.number().min(0).max(300).default(30).describe("How long to wait for the end."),
    timeout_seconds: z.number().positive().max(86_400).optional().describe("Kill it after this time."),
    max_output_bytes: budgetSchema,
    request_id: requestIdSchema,
  }),
  output: z.object({
    process_id: z.string(),
    ...endSchema,
    output: z.string().describe("stdout and stderr in the order in which they were written."),
    next_offset: z.number().int().describe("Where process_read continues."),
    left_out: z
      .object({ from: z.number().int(), to: z.number().int() })
      .nullable()
      .describe("The offsets of output that did not fit: read it with process_read from `from`."),
    hint: z.string().nullable().describe("A next step, if the command failed and the reason is known."),
  }),
  annotations: { destructiveHint: true },
  async run(call, input) {
    const { sandbox_id, command, language, code, cwd, env, user, background, timeout_seconds } = input;
    if ((command === undefined) === (code === undefined) || (code === undefined) !== (language === undefined)) {
      throw new SandboxerError("bad_request", "Give either command, or code with its language.");
    }
    const calls = callsOf(call, sandbox_id);
    const stdin = input.stdin ?? (background ? undefined : "");
    const body = {
      ...given({ shell: command, language, code, cwd, env, user, stdin, timeout: timeout_seconds }),
      // It never blocks on output that nobody reads.
      detach: true,
    };
    const key = idempotencyKey("run", input.request_id);
    const options = { signal: call.signal, ...given({ idempotencyKey: key }) };
    const started = await calls.call("exec", { params: { id: sandbox_id }, body }, options);
    const processId = "id" in started ? started.id : started.process_id;
    const window = new OutputWindow(0, input.max_output_bytes, { keepEnd: true });
    const waitMs = background ? 0 : input.wait_seconds * 1000;
    const exit = await readOutput(calls, processId, window, { waitMs, until: "end", signal: call.signal });
    const { text, nextOffset, gap } = window.take(exit !== undefined);
    const structured = {
      process_id: processId,
      ...endOf(exit),
      output: text,
      next_offset: nextOffset,
      left_out: gap ?? null,
      hint: exit?.hint ?? null,
    };
    return { structured, text: `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}[${statusOf(structured)}]` };
  },
});

const processRead = defineTool({
  name: "process_read",
  title: "Read output of a process",
  core: true,
  description:
    "Read output of a process from an offset. With wait_seconds, wait for new output or its end. Pass next_offset as " +
    "the offset of the next read.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    process_id: processIdSchema,
    offset: z.number().int().nonnegative().default(0),
    wait_seconds: z.number().min(0).max(300).default(0),
    max_output_bytes: budgetSchema,
  }),
  output: z.object({
    process_id: z.string(),
    ...endSchema,
    output: z.string(),
    offset: z.number().int().describe("Where the output begins: later than requested if older output was dropped."),
    next_offset: z.number().int(),
    more: z.boolean().describe("Whether there is more to read: the process runs, or the answer is full."),
  }),
  annotations: { readOnlyHint: true },
  async run(call, { sandbox_id, process_id, offset, wait_seconds, max_output_bytes }) {
    const window = new OutputWindow(offset, max_output_bytes, { keepEnd: false });
    const options = { waitMs: wait_seconds * 1000, until: "output" as const, signal: call.signal };
    const exit = await readOutput(callsOf(call, sandbox_id), process_id, window, options);
    const { text, nextOffset } = window.take(exit !== undefined);
    const structured = {
      process_id,
      ...endOf(exit),
      output: text,
      offset: window.start,
      next_offset: nextOffset,
      more: exit === undefined || nextOffset < exit.offset,
    };
    const rest = structured.more ? `; more from offset ${nextOffset}` : "";
    return { structured, text: `${text}\n[${exit === undefined ? "not at its end" : statusOf(structured)}${rest}]` };
  },
});

const processWrite = defineTool({
  name: "process_write",
  title: "Write to a process",
  core: false,
  description: "Write text to the stdin of a process that was started in the background. End a line with \\n.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    process_id: processIdSchema,
    text: z.string().max(1_000_000),
    close: z.boolean().default(false).describe("Close stdin afterwards."),
  }),
  output: z.object({ written_bytes: z.number().int() }),
  annotations: { destructiveHint: true },
  async run(call, { sandbox_id, process_id, text, close }) {
    const input = { params: { id: sandbox_id, process_id }, query: { close }, body: text };
    await callsOf(call, sandbox_id).call("writeStdin", input, { signal: call.signal });
    return { structured: { written_bytes: Buffer.byteLength(text) } };
  },
});

const processStop = defineTool({
  name: "process_stop",
  title: "Stop a process",
  core: false,
  description: "Send a signal to a process and its children.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    process_id: processIdSchema,
    signal: z.enum(["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"]).default("SIGTERM"),
  }),
  output: z.object({ sent: z.string() }),
  annotations: { destructiveHint: true, idempotentHint: true },
  async run(call, { sandbox_id, process_id, signal }) {
    const input = { params: { id: sandbox_id, process_id }, body: { signal } };
    await callsOf(call, sandbox_id).call("signalProcess", input, { signal: call.signal });
    return { structured: { sent: signal } };
  },
});

interface End {
  readonly state: "running" | "exited";
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly timed_out: boolean;
}

function endOf(exit: Exit | undefined): End {
  if (exit === undefined) return { state: "running", exit_code: null, signal: null, timed_out: false };
  const { exit_code, signal, timed_out } = exit;
  return { state: "exited", exit_code, signal, timed_out };
}

function statusOf(
  end: End & { readonly process_id: string; readonly hint?: string | null; next_offset: number },
): string {
  if (end.state === "running") {
    return `still running as process ${end.process_id}; read on with process_read from offset ${end.next_offset}`;
  }
  const how = end.signal === null ? `exit code ${end.exit_code}` : `ended by ${end.signal}`;
  return `${how}${end.timed_out ? ", timed out" : ""}${typeof end.hint === "string" ? `. ${end.hint}` : ""}`;
}

export const PROCESS_TOOLS = [run, processRead, processWrite, processStop];
