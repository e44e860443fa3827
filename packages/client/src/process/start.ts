import type { Language } from "@sandboxer/protocol";
import type { Answer, Bytes, CallInput, CallOptions } from "../wire/call-types.ts";
import type { WatchOptions } from "./process-link.ts";
import type { PtySize } from "./process.ts";

/** A line for the shell, an argv, or code in a language. */
export type Command = string | readonly string[] | { readonly language: Language; readonly code: string };

export interface SpawnOptions extends CallOptions, WatchOptions {
  /** Kills the process, also while it runs; what waits for it fails with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Absolute; default: the sandbox's working folder. */
  readonly cwd?: string | undefined;
  /** Written at the start; then stdin is closed. Without it, stdin is open. */
  readonly stdin?: Bytes | undefined;
  /** Gives it a terminal; then all output is stdout. */
  readonly pty?: PtySize | undefined;
  /** Then it is ended, and `timedOut` is true. */
  readonly timeoutMs?: number | undefined;
  /** It never blocks when nobody reads: only the newest output is kept. */
  readonly detach?: boolean | undefined;
  /** The same key again finds the same process instead of starting another. Made up when absent. */
  readonly idempotencyKey?: string | undefined;
}

export interface ExecOptions extends SpawnOptions {
  /** Of the collected result; default: 10 MiB. */
  readonly maxOutputBytes?: number | undefined;
}

type ExecBody = NonNullable<CallInput<"exec">["body"]>;
export type StartedProcess = Extract<NonNullable<Answer<"exec">>, { pid: number }>;

/** The longest stdin that travels in the request itself. */
const INLINE_STDIN_CHARACTERS = 64 * 1024;

/** The request for a process whose output is read over its own connection. */
export function execBody(command: Command, options: SpawnOptions): ExecBody {
  const { env, cwd, stdin, pty, timeoutMs, detach } = options;
  return {
    ...what(command),
    ...(env === undefined ? {} : { env }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(isInline(stdin) ? { stdin } : {}),
    ...(pty === undefined ? {} : { pty: { rows: pty.rows, columns: pty.columns } }),
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs / 1000 }),
    ...(detach === true ? { detach } : { wait: false }),
  };
}

export function isInline(stdin: Bytes | undefined): stdin is string {
  return typeof stdin === "string" && stdin.length <= INLINE_STDIN_CHARACTERS;
}

function what(command: Command): Pick<ExecBody, "command" | "shell" | "language" | "code"> {
  if (typeof command === "string") return { shell: command };
  if ("code" in command) return { language: command.language, code: command.code };
  return { command: [...command] };
}
