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
import { SandboxLife } from "../extension/sandbox-life.ts";
import type { DaytonaSandbox } from "./api-schemas.ts";
import type { DaytonaApi } from "./daytona-api.ts";
import type { DaytonaConnection } from "./daytona-connection.ts";
import { vendorStatus } from "./daytona-errors.ts";
import { DaytonaFiles } from "./files/daytona-files.ts";
import { type Interior, lookInside, processTableOf, signalEverything } from "./interior.ts";
import { Processes } from "./exec/processes.ts";
import { payloadOf } from "./snapshot-manifest.ts";
import type { Toolbox } from "./toolbox/toolbox.ts";
import { phaseOf, describeState } from "./sandbox-state.ts";
import { type Waiter, waitForPhase, waitForSnapshot } from "./wait-for-state.ts";

export interface HandleParts {
  readonly request: AcquireRequest;
  readonly sandbox: DaytonaSandbox;
  readonly api: DaytonaApi;
  readonly connection: DaytonaConnection;
  readonly waiter: Waiter;
  readonly toolbox: Toolbox;
  onEnded(): void;
}

/** A running sandbox at Daytona. */
export class DaytonaHandle implements SandboxHandle {
  readonly sandboxId: string;
  readonly vendorId: string;
  readonly ended: Promise<SandboxEnd>;
  readonly files: SandboxFiles;
  readonly #parts: HandleParts;
  readonly #life: SandboxLife;
  readonly #processes: Processes;
  readonly #over = new AbortController();
  #interior: Interior | undefined;
  #removed = false;

  constructor(parts: HandleParts) {
    this.#parts = parts;
    this.sandboxId = parts.request.sandboxId;
    this.vendorId = parts.sandbox.id;
    this.#life = new SandboxLife({ freeze: () => this.#pause(), thaw: () => signalEverything(parts.toolbox, "CONT") });
    this.ended = this.#life.ended;
    this.#processes = new Processes(parts.toolbox, parts.connection.clock, {
      ready: () => this.#life.ready(),
      failure: () => this.#life.failure(),
    });
    this.files = new DaytonaFiles(parts.toolbox.files, async () => {
      await this.#life.ready();
      return (await this.#inside()).shellFiles;
    });
    void watchSandbox(parts.waiter, this.vendorId, this.#over.signal).then((end) => end && this.#finish(end));
  }

  /** Resolves once the toolbox answers. */
  async prepare(options: CallOptions = {}): Promise<void> {
    options.onProgress?.({ phase: "looking inside" });
    this.#interior = await lookInside(this.#parts.toolbox, options.signal);
  }

  /** Processes that an earlier server started, with their unread output. */
  async adoptProcesses(): Promise<void> {
    if ((await this.#inside()).streaming) await this.#processes.adopt();
  }

  async exec(command: ExecCommand): Promise<SandboxProcess> {
    await this.#life.ready();
    return this.#processes.start(command, await this.#inside(), this.#parts.request.spec.env);
  }

  async processes(): Promise<readonly SandboxProcess[]> {
    await this.#life.ready();
    return this.#processes.list();
  }

  async processTable(): Promise<readonly ProcessTableEntry[]> {
    await this.#life.ready();
    return processTableOf(this.#parts.toolbox);
  }

  readonly ownNetwork = true;

  async connect(): Promise<SandboxConnection> {
    await this.#life.ready();
    throw new SandboxerError(
      "not_supported",
      "The backend daytona does not support connections to ports inside the sandbox.",
    );
  }

  /**
   * By reference: Daytona keeps the files under a name. Memory is not saved. https://www.daytona.io/docs/en/snapshots/
   */
  async snapshot(_into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    this.#life.refuseEnded();
    if (options.mode === "full") {
      throw new SandboxerError("not_supported", "The backend daytona saves only files, not memory and processes.");
    }
    return this.#life.save(options, () => this.#save(options));
  }

  freeze(): Promise<void> {
    return this.#life.freeze();
  }

  thaw(): Promise<void> {
    return this.#life.thaw();
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.#life.ready();
    await this.#parts.toolbox.workFolder(options.signal);
  }

  /** Daytona does not report CPU time. */
  async stats(): Promise<SandboxStats> {
    this.#life.refuseEnded();
    const { memUsed = 0, diskUsed = 0 } = await this.#parts.toolbox.metrics();
    return { memoryBytes: memUsed, diskBytes: diskUsed, cpuMs: 0 };
  }

  stop(): Promise<void> {
    return this.#life.change(async () => {
      if (this.#life.over) return;
      const stopping = await this.#askToStop();
      this.#finish({ reason: "destroyed", message: "it was stopped." });
      // The response may still have the old state.
      const after = phaseOf(stopping.state) === "running" ? { ...stopping, state: "stopping" } : stopping;
      await waitForPhase(this.#parts.waiter, after, ["resting"]);
    });
  }

  destroy(): Promise<void> {
    this.#finish({ reason: "destroyed", message: "it was deleted." });
    return this.#life.change(async () => {
      if (this.#removed) return;
      await this.#parts.api.destroy(this.vendorId);
      this.#removed = true;
    });
  }

  /** Releases it for this process; it stays as it is at Daytona. */
  letGo(message = "this server released it; it keeps running at its provider."): void {
    this.#finish({ reason: "destroyed", message });
  }

  /** Daytona refuses to stop a sandbox that has already stopped. */
  async #askToStop(): Promise<DaytonaSandbox> {
    const { api } = this.#parts;
    try {
      return await api.stop(this.vendorId);
    } catch (thrown) {
      const status = vendorStatus(thrown);
      if (status !== 400 && status !== 409) throw thrown;
      const now = await api.get(this.vendorId);
      if (phaseOf(now.state) === "running") throw thrown;
      return now;
    }
  }

  async #save(options: SnapshotOptions): Promise<SnapshotPayload> {
    const { api, waiter, connection, sandbox } = this.#parts;
    const snapshotName = `sandboxer-${this.sandboxId.slice(0, 8)}-${randomUUID()}`;
    const call = { signal: options.signal };
    options.onProgress?.({ phase: "saving" });
    await api.snapshot(this.vendorId, { name: snapshotName }, { ...call, timeoutMs: waiter.timing.changeTimeoutMs });
    await waitForPhase(waiter, await api.get(this.vendorId, call), ["running", "resting"], options);
    await waitForSnapshot(waiter, snapshotName, options);
    const organizationId = connection.organizationId ?? sandbox.organizationId;
    const { image } = this.#parts.request.spec;
    return payloadOf({
      format: 1,
      snapshot_name: snapshotName,
      api_url: connection.apiUrl,
      ...(organizationId === undefined ? {} : { organization_id: organizationId }),
      ...(image === undefined ? {} : { base_image: image.replace(/^docker:/, "") }),
    });
  }

  async #pause(): Promise<void> {
    if (!(await this.#inside()).streaming) {
      throw new SandboxerError("not_supported", "This Daytona image lacks the tools that a pause needs.", {
        hint: "Use an image with sh, grep, kill and tr, such as Debian's, or stop the sandbox.",
      });
    }
    await signalEverything(this.#parts.toolbox, "STOP");
  }

  async #inside(): Promise<Interior> {
    if (this.#interior === undefined) await this.prepare();
    if (this.#interior === undefined) throw new SandboxerError("sandbox_failed", "The sandbox does not answer.");
    return this.#interior;
  }

  #finish(end: SandboxEnd): void {
    const failure = this.#life.finish(end);
    if (failure === undefined) return;
    this.#over.abort();
    this.#processes.abandon(failure);
    this.#parts.onEnded();
  }
}

/** Polls the state, and reports how the sandbox ended by itself; undefined if nobody needs to know. */
async function watchSandbox(
  { api, clock, timing }: Waiter,
  vendorId: string,
  signal: AbortSignal,
): Promise<SandboxEnd | undefined> {
  while (!signal.aborted) {
    try {
      await clock.sleep(timing.watchMs, signal);
      const { state, errorReason } = await api.get(vendorId, { signal });
      const phase = phaseOf(state);
      if (phase === "running" || phase === "transition") continue;
      const why = typeof errorReason === "string" ? `: ${errorReason}` : "";
      return { reason: "crashed", message: `Daytona reports ${describeState(state)}${why}.` };
    } catch (thrown) {
      if (vendorStatus(thrown) === 404) return { reason: "crashed", message: "Daytona no longer has the sandbox." };
      // Its state is unknown now; the next round tries again.
    }
  }
  return undefined;
}
