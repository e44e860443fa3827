import { spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import { killGroupOf } from "../support/kill.ts";

export interface CommandResult {
  /** Undefined if a signal ended it, or it could not be started. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly signal: AbortSignal;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly workingDirectory?: string;
  /** Others that need the CPUs come first. */
  readonly standBack?: boolean;
}

const KEPT_CHARACTERS = 64 * 1024;

/**
 * Runs a program to its end. A failing or missing program is a result, not an exception; only the signal throws, after
 * the whole process group is dead, since apt-get, make and go leave the work to children. It has its own process group,
 * which Ctrl-C does not reach, so it is also ended when this process exits.
 */
export async function runCommand(
  argv: readonly [string, ...string[]],
  options: CommandOptions,
): Promise<CommandResult> {
  options.signal.throwIfAborted();
  const [program, ...rest] = argv;
  const child = spawn(program, rest, {
    cwd: options.workingDirectory,
    // eslint-disable-next-line node/no-process-env -- a child gets the environment of its parent; nothing is decided by it
    env: { ...process.env, LC_ALL: "C", ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  if (options.standBack === true && child.pid !== undefined) lowerPriority(child.pid);
  const stdout = tail(child.stdout);
  const stderr = tail(child.stderr);
  const killGroup = (): void => killGroupOf(child);
  options.signal.addEventListener("abort", killGroup, { once: true });
  process.once("exit", killGroup);
  try {
    return await new Promise<CommandResult>((resolve) => {
      child.once("error", (error) => resolve({ code: undefined, stdout: "", stderr: error.message }));
      child.once("close", (code) => resolve({ code: code ?? undefined, stdout: stdout(), stderr: stderr() }));
    });
  } finally {
    options.signal.removeEventListener("abort", killGroup);
    process.removeListener("exit", killGroup);
    options.signal.throwIfAborted();
  }
}

/** The most informative line of a failed program: the first that contains "error", otherwise the last. */
export function tellingLine(result: CommandResult): string {
  const lines = `${result.stdout}\n${result.stderr}`
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const error = lines.find((line) => /(^E|\b(fatal )?error): /.test(line));
  return error ?? lines.at(-1) ?? `exit code ${result.code ?? "none"}`;
}

/** The children of a process inherit it. */
function lowerPriority(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // It has ended already.
  }
}

function tail(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => (text = (text + chunk).slice(-KEPT_CHARACTERS)));
  return () => text;
}
