import { SandboxerError, type ExecRequestBody, type ExecResult, type ProcessRecord } from "@sandboxer/protocol";
import type { CollectedOutput } from "../../manager/processes/collect-output.ts";
import type { ManagedProcess } from "../../manager/processes/managed-process.ts";
import { requestDigest } from "../../manager/processes/process-key.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { signalName } from "../../manager/processes/signals.ts";
import type { StartRequest } from "../../manager/processes/start-process.ts";
import type { StreamAnswer } from "./handler.ts";
import { sendOutput, WHOLE_BYTES } from "./output-answer.ts";
import type { OutputEncoding } from "./process-lines.ts";

/** The body of an exec in the manager's words. */
export function startRequest(
  body: ExecRequestBody,
  idempotency: { readonly caller: string; readonly key: string } | undefined,
): StartRequest {
  return {
    what: whatOf(body),
    env: body.env ?? {},
    workingFolder: body.cwd,
    user: body.user,
    stdin: body.stdin === undefined ? undefined : Buffer.from(body.stdin, "utf8"),
    pty: body.pty,
    timeoutMs: body.timeout === undefined ? undefined : Math.ceil(body.timeout * 1000),
    detached: body.detach,
    kept: !body.detach && !body.wait,
    idempotency: idempotency === undefined ? undefined : { ...idempotency, digest: requestDigest(body) },
  };
}

function whatOf({ command, shell, language, code }: ExecRequestBody): StartRequest["what"] {
  if (command !== undefined) return { argv: command };
  if (shell !== undefined) return { shell };
  if (language !== undefined && code !== undefined) return { language, code };
  throw new SandboxerError("bad_request", "Give exactly one of command, shell, or code with its language.");
}

export interface CollectedAnswerOptions {
  /** Absent: text as text, and everything else in base64. */
  readonly encoding: OutputEncoding | undefined;
  readonly signal: AbortSignal;
  readonly collect: () => Promise<CollectedOutput>;
  /** Whether others wait for the memory of the response. */
  readonly isWanted: () => boolean;
}

/** A whole process in one response. */
export async function collectedAnswer(
  process: ManagedProcess,
  options: CollectedAnswerOptions,
): Promise<ExecResult | StreamAnswer> {
  const sinceMs = performance.now();
  let output: CollectedOutput | undefined;
  try {
    output = await options.collect();
    const { code, signal, outputEnd } = await process.exited;
    // Keep what a repeated request would need; without an idempotency key there is none.
    if (process.traits.requestDigest === undefined) process.acknowledge(outputEnd);
    process.told = true;
    const { stdout, stderr, truncated } = output;
    const encodingOf = (stream: CollectedOutput["stdout"]): OutputEncoding =>
      options.encoding ?? (stream.isText(truncated) ? "utf8" : "base64");
    const result = {
      process_id: process.id,
      exit_code: code ?? null,
      signal: signalName(signal),
      truncated,
      timed_out: process.timedOut,
      hint: process.hint,
      elapsed_ms: performance.now() - sinceMs,
      stdout_encoding: encodingOf(stdout),
      stderr_encoding: encodingOf(stderr),
    };
    if (stdout.bytes + stderr.bytes > WHOLE_BYTES) return sendOutput(result, output, options);
    const texts = {
      stdout: [...stdout.take(result.stdout_encoding)].join(""),
      stderr: [...stderr.take(result.stderr_encoding)].join(""),
    };
    output.release();
    return { ...result, ...texts };
  } catch (error) {
    output?.release();
    if (!(error instanceof Moving)) throw error;
    throw new SandboxerError("wrong_state", "The sandbox is being saved or moved, and the process with it.", {
      hint: "Resume the sandbox, then repeat the request with its Idempotency-Key, or read the process's output.",
      details: { state: "saving", process_id: process.id },
    });
  }
}

export async function processRecord(process: ManagedProcess): Promise<ProcessRecord> {
  const { start, end } = await process.bounds();
  const { exit, traits } = process;
  return {
    id: process.id,
    pid: process.pid,
    state: exit === undefined ? "running" : "exited",
    command: process.command === null ? null : [...process.command],
    started_at: process.startedAt,
    exit_code: exit?.code ?? null,
    signal: signalName(exit?.signal),
    pty: traits.pty,
    detached: traits.detached,
    output_start: start,
    output_end: end,
    acknowledged: process.acknowledged,
  };
}
