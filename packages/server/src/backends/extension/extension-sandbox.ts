import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type {
  AcquireRequest,
  ExecCommand,
  ProcessTableEntry,
  SandboxConnection,
  SandboxEnd,
  SandboxFiles,
  SandboxHandle,
  SandboxProcess,
  SandboxStats,
  SnapshotOptions,
  SnapshotPayload,
} from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ExtensionHandle, ExtensionProcess, SandboxExtension } from "./extension.ts";
import { asExtensionError, lacking, toolsOf } from "./hooks.ts";
import { LoggedProcess } from "./logged-process.ts";
import { takeSnapshot } from "./payload.ts";
import { SandboxLife } from "./sandbox-life.ts";
import { ShellFiles } from "./shell/shell-files.ts";
import { readProcessTable } from "./shell/process-table.ts";
import { runShell, type StartShell } from "./shell/run-shell.ts";

/** Memory in bytes, processor time in microseconds: from cgroup v2, else v1, else nothing. */
const STATS_SCRIPT = `cd /sys/fs/cgroup || exit 0
if [ -r memory.current ]; then
  read -r memory < memory.current; read -r name micros < cpu.stat
else
  read -r memory < memory/memory.usage_in_bytes; read -r nanos < cpuacct/cpuacct.usage; micros=\${nanos%???}
fi 2>/dev/null
printf '%s %s' "\${memory:-0}" "\${micros:-0}"
`;

const MAX_PROCESSES = 256;

export interface SandboxParts {
  readonly extension: SandboxExtension;
  readonly request: AcquireRequest;
  readonly handle: ExtensionHandle;
  /** Called after everything of it was removed. */
  onRemoved(): Promise<void>;
  onEnded(sandbox: ExtensionSandbox): void;
}

/** A sandbox of an extension, as the backend contract has it. */
export class ExtensionSandbox implements SandboxHandle {
  readonly sandboxId: string;
  readonly ended: Promise<SandboxEnd>;
  readonly files: SandboxFiles;
  readonly #parts: SandboxParts;
  readonly #life: SandboxLife;
  readonly #over = new AbortController();
  readonly #processes = new Map<string, Promise<LoggedProcess>>();
  #removed = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
    this.sandboxId = parts.request.sandboxId;
    this.#life = new SandboxLife({ freeze: () => this.#pause(), thaw: () => this.#resume() });
    this.ended = this.#life.ended;
    this.files = new ShellFiles((script, args) => this.#startShell(script, args));
    void this.#watch();
  }

  async exec(command: ExecCommand): Promise<SandboxProcess> {
    await this.#life.ready();
    if (command.pty !== undefined) throw lacking(this.#parts.extension, "terminals");
    const known = this.#processes.get(command.key);
    if (known !== undefined) return known;
    if (this.#processes.size >= MAX_PROCESSES) {
      throw new SandboxerError("limit_reached", `The sandbox already keeps ${MAX_PROCESSES} processes.`, {
        hint: "Delete the records of processes that have ended.",
      });
    }
    const starting = this.#log(command);
    this.#processes.set(command.key, starting);
    starting.catch(() => this.#processes.delete(command.key));
    return starting;
  }

  async processes(): Promise<readonly SandboxProcess[]> {
    await this.#life.ready();
    const settled = await Promise.allSettled(this.#processes.values());
    return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  }

  async processTable(): Promise<readonly ProcessTableEntry[]> {
    return readProcessTable((script, args) => this.#startShell(script, args));
  }

  /** The extension decides. */
  readonly ownNetwork = true;

  async connect(): Promise<SandboxConnection> {
    await this.#life.ready();
    throw lacking(this.#parts.extension, "connections to ports inside the sandbox");
  }

  async snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    const { extension, handle } = this.#parts;
    const { snapshotId = randomUUID() } = options;
    return this.#life.save(options, () =>
      takeSnapshot(extension, handle, { into, snapshotId, paused: this.#life.paused }, options),
    );
  }

  freeze(): Promise<void> {
    return this.#life.freeze();
  }

  thaw(): Promise<void> {
    return this.#life.thaw();
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.#life.ready();
    await this.#hook((extension, handle) => extension.waitReady(handle, toolsOf(options)));
  }

  async stats(): Promise<SandboxStats> {
    this.#life.refuseEnded();
    if (this.#parts.extension.shell !== true || this.#life.paused) return { memoryBytes: 0, diskBytes: 0, cpuMs: 0 };
    return readStats((script, args) => this.#startShell(script, args));
  }

  async stop(): Promise<void> {
    const { extension } = this.#parts;
    if (extension.stop === undefined) return this.destroy();
    return this.#life.change(async () => {
      if (this.#life.over) return;
      await this.#hook((known, handle) => known.stop?.(handle, toolsOf()) ?? Promise.resolve());
      this.finish({ reason: "destroyed", message: "it was stopped." });
    });
  }

  destroy(): Promise<void> {
    this.finish({ reason: "destroyed", message: "it was deleted." });
    return this.#life.change(async () => {
      if (this.#removed) return;
      await this.#hook((extension, handle) => extension.teardown(handle, toolsOf()));
      this.#removed = true;
      await this.#parts.onRemoved();
    });
  }

  letGo(): void {
    this.finish({ reason: "destroyed", message: "this server released it; it keeps running at its provider." });
  }

  /** Released here; it stays where it is. */
  finish(end: SandboxEnd): void {
    const failure = this.#life.finish(end);
    if (failure === undefined) return;
    this.#over.abort();
    for (const starting of this.#processes.values()) {
      starting.then(
        (process) => process.abandon(failure),
        () => {},
      );
    }
    this.#parts.onEnded(this);
  }

  async #pause(): Promise<void> {
    await this.#hook((extension, handle) => {
      if (extension.pause === undefined) throw lacking(extension, "pauses");
      return extension.pause(handle, toolsOf());
    });
  }

  async #resume(): Promise<void> {
    await this.#hook((extension, handle) => extension.resume?.(handle, toolsOf()) ?? Promise.resolve());
  }

  async #log(command: ExecCommand): Promise<LoggedProcess> {
    const process = await this.#start(command);
    const logged = new LoggedProcess(command.key, process, {
      ready: () => this.#life.ready(),
      failure: () => this.#life.failure(),
      forget: (key) => void this.#processes.delete(key),
    });
    const failure = this.#life.failure();
    if (failure !== undefined) logged.abandon(failure);
    return logged;
  }

  #start(command: Pick<ExecCommand, "argv" | "env" | "workingFolder">): Promise<ExtensionProcess> {
    const { argv, workingFolder } = command;
    const env = { ...this.#parts.request.spec.env, ...command.env };
    return this.#hook((extension, handle) => {
      if (extension.exec === undefined) throw lacking(extension, "processes");
      return extension.exec(
        handle,
        { argv, env, ...(workingFolder === undefined ? {} : { workingFolder }) },
        toolsOf(),
      );
    });
  }

  async #startShell(script: string, args: readonly string[]): Promise<ExtensionProcess> {
    await this.#life.ready();
    if (this.#parts.extension.shell !== true) throw lacking(this.#parts.extension, "shell to look inside with");
    return this.#start({ argv: ["sh", "-c", script, "sh", ...args], env: { LC_ALL: "C" } });
  }

  async #hook<Result>(
    call: (extension: SandboxExtension, handle: ExtensionHandle) => Promise<Result>,
  ): Promise<Result> {
    const { extension, handle } = this.#parts;
    try {
      return await call(extension, handle);
    } catch (thrown) {
      throw asExtensionError(extension, thrown);
    }
  }

  async #watch(): Promise<void> {
    const { extension, handle } = this.#parts;
    const tools = { signal: this.#over.signal, progress: () => {} };
    try {
      const end = await extension.waitEnd?.(handle, tools);
      if (end !== undefined) this.finish(end);
    } catch {
      // Its state is unknown; the next call that needs the sandbox finds out.
    }
  }
}

/** Disk use is not measured. */
async function readStats(start: StartShell): Promise<SandboxStats> {
  const { stdout } = await runShell(start, STATS_SCRIPT, []);
  const match = /^(\d+) (\d+)$/.exec(stdout.toString("latin1"));
  return { memoryBytes: Number(match?.[1] ?? 0), diskBytes: 0, cpuMs: Math.round(Number(match?.[2] ?? 0) / 1000) };
}
