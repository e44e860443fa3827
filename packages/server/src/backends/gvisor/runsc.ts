import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { SandboxerError } from "@sandboxer/protocol";

export type Platform = "systrap" | "ptrace" | "kvm";

export interface RunscOptions {
  readonly path: string;
  /** The search path of runsc and its launcher. */
  readonly searchPath: string;
  readonly platform: Platform;
  /** Folder of runsc's container state. */
  readonly stateDirectory: string;
  /** Folder of the writable layers of root filesystems, one unlinked file for each sandbox. */
  readonly filestoreDirectory: string;
  /** The maximum size of the writable layer; absent: the engine cannot limit it. */
  readonly diskLimitBytes?: number | undefined;
  readonly network: "none" | "sandbox";
  readonly useCgroups: boolean;
  /** Whether set-user-ID programs raise rights. An image keeps what it was saved with. */
  readonly allowsSetUserId: boolean;
  /** Folders of the host that an attached command can only read, and the agent binary that sees to it. */
  readonly sealed: { readonly by: string; readonly folders: readonly string[] } | undefined;
  /** Cgroups for attached commands and their children. */
  readonly attachedCgroups: readonly string[];
}

/** Enters the cgroups before the "--", and execs the command after it. */
const ENTER_CGROUPS = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done 2>/dev/null; shift; exec "$@"';

const ERROR_BYTES = 16 * 1024;

/** runsc's command line. Commands are argv arrays without secrets. */
export class Runsc {
  readonly #options: RunscOptions;

  constructor(options: RunscOptions) {
    this.#options = options;
  }

  /** Runs a command to its end; a failure is an error with runsc's own message. */
  async command(args: readonly string[], options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<string> {
    const child = spawn(this.#options.path, [...this.#globalFlags(), ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      // Its own process group: a signal to the server's group must not end a save half-way.
      detached: true,
      env: this.#environment(),
      timeout: options.timeoutMs ?? 120_000,
      killSignal: "SIGKILL",
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const stdout: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    const stderr = lastWords(child);
    const code = await exitOf(child);
    if (code === 0) return Buffer.concat(stdout).toString("utf8");
    throw new RunscError(args[0] ?? "runsc", code, stderr());
  }

  /**
   * Starts an attached command, which lives as long as its sandbox, and no longer than this process: a paused sandbox
   * cannot see the end of its pipes. `setpriv` asks the kernel for that and execs runsc.
   */
  attached(args: readonly string[], stdio: StdioOptions): AttachedRunsc {
    const { path, attachedCgroups, sealed } = this.#options;
    const runsc = [path, ...this.#globalFlags(), ...args];
    const sealing = sealed === undefined ? [] : [sealed.by, "read-only", ...sealed.folders, "--"];
    const command = ["setpriv", "--pdeathsig", "KILL", "--", ...sealing, ...runsc];
    const [program = "", ...rest] =
      attachedCgroups.length === 0 ? command : ["sh", "-c", ENTER_CGROUPS, "sh", ...attachedCgroups, "--", ...command];
    const child = spawn(program, rest, { stdio, detached: true, env: this.#environment() });
    return { child, lastWords: lastWords(child), exited: exitOf(child) };
  }

  /**
   * Nothing of the server's environment: runsc passes it to gofers, and a hole in gVisor would show it to a sandbox.
   */
  #environment(): Record<string, string> {
    return { PATH: this.#options.searchPath };
  }

  #globalFlags(): string[] {
    const { platform, stateDirectory, filestoreDirectory, diskLimitBytes, network, useCgroups, allowsSetUserId } =
      this.#options;
    const size = diskLimitBytes === undefined ? "" : `,size=${diskLimitBytes}`;
    return [
      `--root=${stateDirectory}`,
      `--platform=${platform}`,
      `--network=${network}`,
      `--overlay2=root:dir=${filestoreDirectory}${size}`,
      ...(useCgroups ? [] : ["--ignore-cgroups"]),
      ...(allowsSetUserId ? ["--allow-suid"] : []),
    ];
  }
}

export interface AttachedRunsc {
  readonly child: ChildProcess;
  readonly exited: Promise<number>;
  lastWords(): string;
}

/** A failed runsc command, with the line that says why. */
export class RunscError extends SandboxerError {
  readonly exitCode: number;

  constructor(command: string, exitCode: number, stderr: string) {
    const reason = firstReason(stderr);
    const full = /no space left on device/i.test(stderr);
    super(full ? "no_space" : "internal", `runsc ${command} failed (${exitCode}): ${reason}`);
    this.exitCode = exitCode;
  }
}

export const NO_REASON = "no reason given";

/** The line with the error; a Go stack follows it. */
export function firstReason(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.trim());
  const telling = lines.filter(
    (line) => line !== "" && !line.startsWith("goroutine ") && !line.startsWith("sandboxer-agent"),
  );
  return (telling.find((line) => /error|failed|cannot|panic|no space/i.test(line)) ?? telling[0] ?? NO_REASON).slice(
    0,
    500,
  );
}

function lastWords(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
    // The start names the cause, the end the failure; the middle of a long text is neither.
    if (text.length > 2 * ERROR_BYTES) text = `${text.slice(0, ERROR_BYTES)}\n…\n${text.slice(-ERROR_BYTES / 2)}`;
  });
  return () => text;
}

function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once("error", () => resolve(127));
    child.once("close", (code, signal) => resolve(code ?? (signal === null ? 1 : 137)));
  });
}
