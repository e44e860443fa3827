import { SandboxerError, type ExecRequestBody, type ExecResult, type ProcessRecord } from "@sandboxer/protocol";
import { collectOutput } from "../../manager/processes/collect-output.ts";
import type { ManagedProcess } from "../../manager/processes/managed-process.ts";
import { requestDigest } from "../../manager/processes/process-key.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { signalName } from "../../manager/processes/signals.ts";
import type { StartRequest } from "../../manager/processes/start-process.ts";
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

/** The whole of a process in one answer. */
export async function collectedAnswer(
  process: ManagedProcess,
  options: { readonly maxBytes: number; readonly encoding: OutputEncoding; readonly signal: AbortSignal },
): Promise<ExecResult> {
  const sinceMs = performance.now();
  try {
    const { stdout, stderr, truncated } = await collectOutput(process, options);
    const { code, signal, outputEnd } = await process.exited;
    // What a repeated request would need stays; without a key there is none.
    if (process.traits.requestDigest === undefined) process.acknowledge(outputEnd);
    process.told = true;
    return {
      process_id: process.id,
      exit_code: code ?? null,
      signal: signalName(signal),
      stdout: stdout.toString(options.encoding),
      stderr: stderr.toString(options.encoding),
      truncated,
      timed_out: process.timedOut,
      elapsed_ms: performance.now() - sinceMs,
    };
  } catch (error) {
    if (!(error instanceof Moving)) throw error;
    throw new SandboxerError("wrong_state", "The sandbox is being saved or moved, and the process goes along.", {
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
    exit_code: exit?.code ?? null,
    signal: signalName(exit?.signal),
    pty: traits.pty,
    detached: traits.detached,
    output_start: start,
    output_end: end,
    acknowledged: process.acknowledged,
  };
}
