import { rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { NetworkPolicy } from "@sandboxer/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { AgentSandbox, DESTROYED, OUT_OF_MEMORY } from "../agent/agent-sandbox.ts";
import { saveFilesystem } from "../agent/save-filesystem.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type {
  AcquireRequest,
  NetworkGuard,
  SandboxEnd,
  SandboxHandle,
  SandboxStats,
  SnapshotMember,
  SnapshotOptions,
  SnapshotPayload,
} from "../backend.ts";
import { sandboxEnded } from "../sandbox-ended.ts";
import type { SandboxCgroup } from "./cgroups.ts";
import { ENGINE_MEMBERS, type EngineControl } from "./control/engine-control.ts";
import { DiskWatch } from "./disk-limit.ts";
import { environmentOf } from "./environment.ts";
import type { ImageRequirements } from "./image-requirements.ts";
import type { SandboxNetwork } from "./network/sandbox-network.ts";
import { KernelProcess } from "./kernel-process.ts";
import { hasNoSpace, noSpaceFor } from "./no-space.ts";
import type { RootFilesystemDefaults } from "./root-filesystem/root-filesystem.ts";
import { firstReason, NO_REASON, RunscError, type AttachedRunsc, type Runsc } from "./runsc.ts";
import type { OciSpec } from "./saved-spec.ts";
import { removeEngineState } from "./engine-state.ts";
import { endSandboxProcesses, Filestore } from "./sandbox-process-tree.ts";
import { hostnameOf } from "./sandbox-hostname.ts";
import { Doze } from "./doze.ts";
import { Stillness } from "./stillness.ts";

export const CONFIG_MEMBER = "config.json";
export const AGENT_MEMBER = "sandboxer-agent";
export const FILES_MEMBER = "files.tar";

/** How long a pooled sandbox may take to answer; after that a new one is faster. */
const ADOPTION_MS = 2_000;
const SAVE_TIMEOUT_MS = 600_000;
/** How long runsc may take to report why its sandbox has ended. */
const LEAVING_MS = 2_000;
const REASON_MS = 200;
/** runsc's exit code after SIGKILL ended gVisor's kernel. */
const KILLED = 137;
/** Greater exit codes are this and the number of a signal. */
const SIGNALLED = 128;

export interface GvisorSandboxParts {
  readonly sandboxId: string;
  readonly containerId: string;
  readonly directory: string;
  readonly stateDirectory: string;
  readonly filestoreDirectory: string;
  readonly runsc: Runsc;
  readonly control: EngineControl;
  readonly attached: AttachedRunsc;
  readonly agent: AgentClient;
  readonly spec: OciSpec;
  readonly agentPath: string;
  readonly rootPath: string;
  readonly cgroup: SandboxCgroup | undefined;
  readonly network: SandboxNetwork | undefined;
  readonly diskLimitBytes: number;
  /** See {@link Doze}; 0: never. */
  readonly dozeAfterMs: number;
  readonly requirements: ImageRequirements;
  readonly defaults: RootFilesystemDefaults | undefined;
  readonly rootInside: boolean;
  /** Nothing of it runs any more. runsc's leftovers are removed in the background: it may wait seconds for a reaper. */
  readonly onEnded: (cleanUp: Promise<void>) => void;
}

/** One running gVisor sandbox: the attached runsc process, and the agent inside. */
export class GvisorSandbox extends AgentSandbox implements SandboxHandle {
  readonly ended: Promise<SandboxEnd>;
  readonly #parts: GvisorSandboxParts;
  readonly #ended = Promise.withResolvers<SandboxEnd>();
  #kernel: KernelProcess | undefined;
  #filestore: Filestore | undefined;
  #diskWatch: DiskWatch | undefined;
  /** Settles when nothing of it runs any more and its clean-up has begun. */
  readonly #over: Promise<void>;
  #leaving = false;
  #destroying: Promise<void> | undefined;
  readonly #doze: Doze;
  readonly #stillness: Stillness;
  #sandboxId: string;

  constructor(parts: GvisorSandboxParts) {
    super(parts.agent);
    this.#sandboxId = parts.sandboxId;
    this.#parts = parts;
    this.#doze = new Doze({
      agent: parts.agent,
      // A sandbox with a network may receive data from others than its agent.
      afterMs: parts.network?.connected === true ? 0 : parts.dozeAfterMs,
      onChange: (dozing) => (dozing ? this.#diskWatch?.rest() : this.#diskWatch?.start()),
    });
    this.#stillness = new Stillness(parts.agent, parts.control, this.#doze);
    this.ended = this.#ended.promise;
    this.#over = parts.attached.exited.then((code) => this.#onExit(code));
  }

  get sandboxId(): string {
    return this.#sandboxId;
  }

  get engine(): string {
    return this.#parts.requirements.engine.version;
  }

  /** Resolves when the engine has loaded its image. */
  untilLoaded(options: CallOptions & { readonly timeoutMs: number }): Promise<void> {
    return this.#parts.control.untilLoaded(this.#parts.attached, options);
  }

  /** Turns a pooled sandbox into the requested one, before anyone uses it. */
  async become({ sandboxId, spec }: AcquireRequest, options: CallOptions): Promise<void> {
    this.#sandboxId = sandboxId;
    const { agent, requirements, defaults } = this.#parts;
    agent.useEnvironment(environmentOf(spec, defaults));
    const waiting = { timeoutMs: ADOPTION_MS, signal: options.signal };
    if (requirements.generation === 0) return agent.become(hostnameOf(sandboxId), waiting);
    // A restored one was frozen since.
    await this.#stillness.letGo();
    await agent.restored(requirements.generation, hostnameOf(sandboxId), waiting);
    await this.watch();
  }

  /** Starts enforcing limits that the engine does not, and dozing. */
  async watch(): Promise<void> {
    const { filestoreDirectory, diskLimitBytes, agent } = this.#parts;
    const kernel = await this.#findKernel();
    if (kernel === undefined) return;
    this.#filestore = new Filestore(kernel.pid, filestoreDirectory);
    this.#diskWatch = new DiskWatch(this.#filestore, diskLimitBytes, () => agent.killAll());
    this.#diskWatch.start();
    this.#doze.begin();
  }

  async #findKernel(): Promise<KernelProcess | undefined> {
    const { pid } = this.#parts.attached.child;
    this.#kernel ??= pid === undefined ? undefined : await KernelProcess.find(pid);
    if (this.#kernel !== undefined) this.#doze.meet(this.#kernel);
    return this.#kernel;
  }

  /** A frame is about to be sent to the agent. */
  wake(): void {
    this.#doze.wake();
  }

  get ownNetwork(): boolean {
    return this.#parts.network?.connected === true;
  }

  async setNetwork(policy: NetworkPolicy, guard: NetworkGuard): Promise<void> {
    await this.#parts.network?.setPolicy(policy, guard);
  }

  get dozing(): boolean {
    return this.#doze.dozing;
  }

  get imageCommand(): readonly string[] | undefined {
    const { entrypoint = [], command = [] } = this.#parts.defaults ?? {};
    const argv = [...entrypoint, ...command];
    return argv.length === 0 ? undefined : argv;
  }

  #stopWatching(): void {
    this.#doze.end();
    this.#stillness.end();
    this.#diskWatch?.rest();
  }

  async whileFrozen<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#stillness.whileFrozen(work);
    } finally {
      // A sandbox that has ended meanwhile need not be released.
      await this.#stillness.release().catch(() => {});
    }
  }

  async stats(): Promise<SandboxStats> {
    const { cgroup } = this.#parts;
    return {
      memoryBytes: (await cgroup?.memoryBytes()) ?? 0,
      cpuMs: (await cgroup?.cpuMs()) ?? 0,
      diskBytes: (await this.#filestore?.usedBytes()) ?? 0,
    };
  }

  async snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    return options.mode === "full" ? this.#saveAll(into, options) : this.#saveFiles(into, options);
  }

  async freeze(): Promise<void> {
    await this.#findKernel();
    await this.#stillness.hold();
  }

  thaw(): Promise<void> {
    return this.#stillness.letGo();
  }

  /** A gVisor sandbox that is not running exists only as an image; there is nothing to resume. */
  stop(): Promise<void> {
    return this.destroy();
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy();
    return this.#destroying;
  }

  /**
   * The agent is silent during the save, so that its pipes are empty and nobody sees later activity. The engine leaves
   * the sandbox running, because otherwise a failed save destroys it. Without `leaveRunning` it is paused while the
   * caller works; what it does until then is lost.
   */
  async #saveAll(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    const { control, requirements } = this.#parts;
    options.onProgress?.({ phase: "saving" });
    const image = join(into, "image");
    const patience = {
      timeoutMs: SAVE_TIMEOUT_MS,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    };
    let complete = async (): Promise<void> => {};
    const capture = async (): Promise<void> => {
      complete = await control.checkpoint(image, patience);
    };
    try {
      // A sandbox with a network could still be observed.
      const stillMs = await this.#stillness.capture(capture, { paused: this.ownNetwork });
      if (options.leaveRunning) {
        await this.#stillness.release();
        options.onStill?.(performance.now() - stillMs);
      } else this.#stillness.pauseSoon();
      await complete();
      return { kind: "gvisor-checkpoint", members: await this.#collectMembers(into, image), requirements };
    } catch (error) {
      const isFull = await hasNoSpace(into);
      if (isFull) await control.freeSpace();
      await Promise.all([
        this.#stillness.release().catch(() => {}),
        rm(image, { recursive: true, force: true }).catch(() => {}),
      ]);
      throw await this.#reasonFor(error, isFull ? noSpaceFor(into, error) : error);
    }
  }

  /** A save that fails because the sandbox has ended reports that reason, which may be known a moment later. */
  async #reasonFor(error: unknown, likely: unknown): Promise<unknown> {
    if (!(error instanceof RunscError) || error.code !== "internal") return error;
    await Promise.race([this.#over, delay(REASON_MS)]);
    return this.#parts.agent.failure ?? likely;
  }

  /** The image includes its configuration and its agent: both must be the same at a restore. */
  async #collectMembers(into: string, image: string): Promise<SnapshotMember[]> {
    const config = join(into, CONFIG_MEMBER);
    await writeFile(config, JSON.stringify(this.#parts.spec));
    return Promise.all([
      member(CONFIG_MEMBER, config),
      member(AGENT_MEMBER, this.#parts.agentPath),
      ...ENGINE_MEMBERS.map((name) => member(name, join(image, name))),
    ]);
  }

  async #saveFiles(into: string, options: SnapshotOptions): Promise<SnapshotPayload> {
    const { agent, rootPath, requirements, diskLimitBytes } = this.#parts;
    options.onProgress?.({ phase: "saving files" });
    try {
      const path = join(into, FILES_MEMBER);
      const stillMs = await this.#stillness.whileFrozen(async () => {
        const frozenMs = performance.now();
        await saveFilesystem(agent.rawFiles, rootPath, path, diskLimitBytes);
        return frozenMs;
      });
      const { root_filesystem } = requirements;
      const members = [await member(FILES_MEMBER, path)];
      if (options.leaveRunning) {
        await this.#stillness.release();
        options.onStill?.(performance.now() - stillMs);
      }
      return { kind: "workspace-tar", members, requirements: { root_filesystem } };
    } catch (error) {
      await this.#stillness.release().catch(() => {});
      throw error;
    }
  }

  /** The agent has ended: the rest follows by itself, or is ended. */
  async expectEnd(): Promise<void> {
    this.#leaving = true;
    const { attached } = this.#parts;
    await Promise.race([attached.exited, delay(LEAVING_MS)]);
    await endSandboxProcesses(attached);
  }

  async #destroy(): Promise<void> {
    // A sandbox that was ending by itself did not end because of this call.
    if (!this.#leaving && this.#parts.agent.failure === undefined) this.#settle(DESTROYED);
    await endSandboxProcesses(this.#parts.attached);
    await this.#over;
  }

  async #onExit(code: number): Promise<void> {
    this.#stopWatching();
    const { cgroup, agent, onEnded } = this.#parts;
    if ((await cgroup?.ranOutOfMemory(code === KILLED)) === true) this.#settle(OUT_OF_MEMORY);
    const reason = agent.failure?.message ?? this.#reasonOf(code);
    this.#settle({ reason: "crashed", message: `The sandbox ended unexpectedly (${code}): ${reason}` });
    onEnded(this.#cleanUp());
  }

  #reasonOf(code: number): string {
    const { attached, rootInside } = this.#parts;
    const reason = firstReason(attached.lastWords());
    if (reason !== NO_REASON || !rootInside || code <= SIGNALLED) return reason;
    return `signal ${code - SIGNALLED} ended its PID 1; programs that run as root inside can do that`;
  }

  /** The first reason wins. */
  #settle(end: SandboxEnd): void {
    this.#ended.resolve(end);
    this.#parts.agent.fail(sandboxEnded(end));
  }

  async #cleanUp(): Promise<void> {
    this.#stopWatching();
    const { directory, cgroup, network } = this.#parts;
    await this.#stillness.settled();
    await removeEngineState(this.#parts);
    await Promise.all([rm(directory, { recursive: true, force: true }), cgroup?.remove(), network?.remove()]);
  }
}

async function member(name: string, path: string): Promise<SnapshotMember> {
  return { name, path, sizeBytes: (await stat(path)).size };
}
