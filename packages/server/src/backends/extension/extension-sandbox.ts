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
import { SerialQueue } from "../../support/serial-queue.ts";
import type { ExtensionHandle, ExtensionProcess, SandboxExtension } from "./extension.ts";
import { asExtensionError, lacking, toolsOf } from "./hooks.ts";
import { LoggedProcess } from "./logged-process.ts";
import { takeSnapshot } from "./payload.ts";
import { PauseGate } from "./pause-gate.ts";
import { ShellFiles } from "./shell/shell-files.ts";
import { readProcessTable } from "./shell/process-table.ts";
import { readStats } from "./shell/stats.ts";

const MAX_PROCESSES = 256;

export interface SandboxParts {
  readonly extension: SandboxExtension;
  readonly request: AcquireRequest;
  readonly handle: ExtensionHandle;
  /** After everything of it was removed. */
  onRemoved(): Promise<void>;
  onEnded(sandbox: ExtensionSandbox): void;
}

/** A sandbox of an extension, as the backend contract has it. */
export class ExtensionSandbox implements SandboxHandle {
  readonly sandboxId: string;
  readonly ended: Promise<SandboxEnd>;
  readonly files: SandboxFiles;
  readonly #parts: SandboxParts;
  readonly #gate = new PauseGate();
  readonly #ending = Promise.withResolvers<SandboxEnd>();
  readonly #over = new AbortController();
  readonly #changes = new SerialQueue();
  readonly #processes = new Map<string, Promise<LoggedProcess>>();
  #end: SandboxEnd | undefined;
  #removed = false;

  constructor(parts: SandboxParts) {
    this.#parts = parts;
    this.sandboxId = parts.request.sandboxId;
    this.ended = this.#ending.promise;
    this.files = new ShellFiles((script, args) => this.#startShell(script, args));
    void this.#watch();
  }

  async exec(command: ExecCommand): Promise<SandboxProcess> {
    await this.#ready();
    if (command.pty !== undefined) throw lacking(this.#parts.extension, "terminals");
    const known = this.#processes.get(command.key);
    if (known !== undefined) return known;
    if (this.#processes.size >= MAX_PROCESSES) {
      throw new SandboxerError("limit_reached", `The sandbox keeps ${MAX_PROCESSES} processes already.`, {
        hint: "Release processes that have ended.",
      });
    }
    const starting = this.#log(command);
    this.#processes.set(command.key, starting);
    starting.catch(() => this.#processes.delete(command.key));
    return starting;
  }

  async processes(): Promise<readonly SandboxProcess[]> {
    await this.#ready();
    const settled = await Promise.allSettled(this.#processes.values());
    return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  }

  async processTable(): Promise<readonly ProcessTableEntry[]> {
    return readProcessTable((script, args) => this.#startShell(script, args));
  }

  async connect(): Promise<SandboxConnection> {
    await this.#ready();
    throw lacking(this.#parts.extension, "connections to ports inside");
  }

  async snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    return this.#changes.run(async () => {
      this.#refuseEnded();
      const { extension, handle } = this.#parts;
      const wasPaused = this.#gate.paused;
      // It must stay still from the save on, where it is to be put down.
      if (!options.leaveRunning && !wasPaused) await this.#pause();
      try {
        return await takeSnapshot(extension, handle, { into, paused: this.#gate.paused }, options);
      } catch (thrown) {
        if (!wasPaused && this.#gate.paused) await this.#resume();
        throw thrown;
      }
    });
  }

  pause(): Promise<void> {
    return this.#changes.run(() => this.#pause());
  }

  resume(): Promise<void> {
    return this.#changes.run(() => this.#resume());
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.#ready();
    await this.#hook((extension, handle) => extension.waitReady(handle, toolsOf(options)));
  }

  async stats(): Promise<SandboxStats> {
    this.#refuseEnded();
    if (this.#parts.extension.shell !== true || this.#gate.paused) return { memoryBytes: 0, diskBytes: 0, cpuMs: 0 };
    return readStats((script, args) => this.#startShell(script, args));
  }

  async stop(): Promise<void> {
    const { extension } = this.#parts;
    if (extension.stop === undefined) return this.destroy();
    return this.#changes.run(async () => {
      if (this.#end !== undefined) return;
      await this.#hook((known, handle) => known.stop?.(handle, toolsOf()) ?? Promise.resolve());
      this.finish({ reason: "destroyed", message: "it was stopped." });
    });
  }

  destroy(): Promise<void> {
    this.finish({ reason: "destroyed", message: "it was destroyed." });
    return this.#changes.run(async () => {
      if (this.#removed) return;
      await this.#hook((extension, handle) => extension.teardown(handle, toolsOf()));
      this.#removed = true;
      await this.#parts.onRemoved();
    });
  }

  /** Over for everyone here; what it is made of stays where it is. */
  finish(end: SandboxEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#over.abort();
    const failure = this.#failure() ?? new SandboxerError("sandbox_failed", end.message);
    this.#gate.open();
    for (const starting of this.#processes.values()) {
      starting.then(
        (process) => process.abandon(failure),
        () => {},
      );
    }
    this.#parts.onEnded(this);
    this.#ending.resolve(end);
  }

  async #pause(): Promise<void> {
    this.#refuseEnded();
    if (this.#gate.paused) return;
    const { extension, handle } = this.#parts;
    if (extension.pause === undefined) throw lacking(extension, "pauses");
    this.#gate.close();
    try {
      await extension.pause(handle, toolsOf());
    } catch (thrown) {
      this.#gate.open();
      throw asExtensionError(extension, thrown);
    }
  }

  async #resume(): Promise<void> {
    this.#refuseEnded();
    if (!this.#gate.paused) return;
    await this.#hook((extension, handle) => extension.resume?.(handle, toolsOf()) ?? Promise.resolve());
    this.#gate.open();
  }

  async #log(command: ExecCommand): Promise<LoggedProcess> {
    const process = await this.#start(command);
    const logged = new LoggedProcess(command.key, process, {
      ready: () => this.#ready(),
      failure: () => this.#failure(),
      forget: (key) => void this.#processes.delete(key),
    });
    const failure = this.#failure();
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
    await this.#ready();
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
      // Nobody can tell any more; the next call that needs the sandbox will.
    }
  }

  async #ready(): Promise<void> {
    this.#refuseEnded();
    await this.#gate.passage();
    this.#refuseEnded();
  }

  #refuseEnded(): void {
    const failure = this.#failure();
    if (failure !== undefined) throw failure;
  }

  #failure(): SandboxerError | undefined {
    if (this.#end === undefined) return undefined;
    return new SandboxerError("sandbox_failed", `The sandbox has ended: ${this.#end.message}`);
  }
}
