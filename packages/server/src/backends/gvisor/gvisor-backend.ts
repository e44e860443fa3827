import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import type {
  AcquireRequest,
  Capabilities,
  EngineFacts,
  Health,
  MachineFacts,
  PreparedState,
  SandboxBackend,
  SandboxHandle,
  SnapshotPayload,
  StateNeeds,
  WarmFigures,
} from "../backend.ts";
import { GVISOR } from "../traits.ts";
import { placeAgent } from "./agent-placement.ts";
import { detectCgroups } from "./cgroups.ts";
import { readTraits } from "./engine.ts";
import { canSeal } from "./seal.ts";
import type { GvisorSandbox } from "./gvisor-sandbox.ts";
import { machineFacts, needsOf, readCpuFeatures } from "./image-requirements.ts";
import type { CompleteResources } from "./oci-spec.ts";
import { onSavedImage, SandboxStarter, type Machine, type StarterOptions } from "./sandbox-starter.ts";
import { WarmSandboxes, type WarmOptions } from "./warm/warm-sandboxes.ts";

export interface GvisorBackendOptions extends StarterOptions {
  /** Absent: no warm pool. */
  readonly warm?: WarmOptions;
}

/** gVisor, driven through runsc: one attached runsc process for each sandbox, with our agent as its PID 1. */
export class GvisorBackend implements SandboxBackend {
  readonly name = GVISOR.name;
  readonly capabilities: Capabilities;
  readonly loads = GVISOR.loads;
  readonly keeps = GVISOR.keeps;
  readonly #options: GvisorBackendOptions;
  readonly #machine: Machine;
  readonly #starter: SandboxStarter;
  readonly #live = new Set<GvisorSandbox>();
  readonly #cleanUps = new Set<Promise<void>>();
  readonly #warm: WarmSandboxes | undefined;

  private constructor(options: GvisorBackendOptions, machine: Machine) {
    this.#options = options;
    this.#machine = machine;
    this.#starter = new SandboxStarter(options, machine, (ended, cleanUp) => {
      this.#live.delete(ended);
      this.#cleanUps.add(cleanUp);
      void cleanUp.finally(() => this.#cleanUps.delete(cleanUp));
    });
    if (options.warm !== undefined) {
      const defaults = { image: options.defaultImage, resources: options.defaultResources };
      const source = { defaults, live: () => this.#live.size, starter: this.#starter };
      this.#warm = new WarmSandboxes(options.warm, source);
    }
    this.capabilities = {
      ...GVISOR.capabilities,
      network: options.networkMode !== "off" && (options.networkMode !== "namespace" || options.network?.ok === true),
      limits: machine.cgroups !== "none",
      root: this.#starter.rootInside,
    };
  }

  get defaultResources(): CompleteResources {
    return this.#options.defaultResources;
  }

  get engines(): readonly EngineFacts[] {
    return this.#options.engines?.facts ?? [];
  }

  get machine(): MachineFacts {
    const { engine, platform, engines } = this.#options;
    const installed = this.engines.filter(({ state }) => state !== "fetching" && state !== "failed");
    return machineFacts({
      engines: [...new Set([engine.version, ...installed.map(({ version }) => version)])],
      fetches: engines?.fetches,
      platform,
      cpuFeatures: this.#machine.cpuFeatures,
    });
  }

  needsOf({ kind, requirements }: Pick<SnapshotPayload, "kind" | "requirements">): StateNeeds {
    return kind === "gvisor-checkpoint" ? needsOf(requirements) : {};
  }

  get warm(): WarmFigures | undefined {
    return this.#warm?.figures;
  }

  static async open(options: GvisorBackendOptions): Promise<GvisorBackend> {
    const agent = await placeAgent(options.agentPath, options.cacheDirectory);
    const [cgroups, cpuFeatures, traits, seals] = await Promise.all([
      detectCgroups(),
      readCpuFeatures(),
      readTraits(options.engine.path),
      canSeal(agent.path),
    ]);
    return new GvisorBackend(options, { agent, cgroups, cpuFeatures, traits, seals });
  }

  async probe(): Promise<Health> {
    const { engine, platform, defaultImage } = this.#options;
    try {
      await this.#starter.images.prepare(defaultImage, {});
      const details = { version: engine.version, platform, cgroups: this.#machine.cgroups, image: defaultImage };
      return { ok: true, summary: `gVisor ${engine.version} on ${platform}`, details };
    } catch (error) {
      return { ok: false, summary: (error as Error).message, remedy: "sandboxer doctor" };
    }
  }

  async acquire(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle> {
    return this.#acquireFresh(request, options);
  }

  /** A sandbox that is not running exists only as an image. */
  async tryResume(): Promise<undefined> {
    return undefined;
  }

  async acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions = {},
  ): Promise<GvisorSandbox> {
    if (snapshot.kind === "gvisor-checkpoint") {
      await this.#makeRoom(options);
      return this.#own(await this.#starter.restored(request, snapshot, options));
    }
    if (snapshot.kind === "workspace-tar") {
      return this.#starter.withFiles(snapshot, () => this.#acquireFresh(onSavedImage(request, snapshot), options));
    }
    throw new SandboxerError("image_incompatible", `A snapshot of kind ${snapshot.kind} cannot be loaded by gVisor.`);
  }

  async takePrepared(
    request: AcquireRequest,
    state: PreparedState,
    options: CallOptions = {},
  ): Promise<SandboxHandle | undefined> {
    this.#starter.check(request);
    const taken = await this.#warm?.takePrepared(request, state, options);
    return taken === undefined ? undefined : this.#own(taken);
  }

  forgetPrepared(stateId: string): void {
    this.#warm?.forget(stateId);
  }

  async stopPreparing(): Promise<void> {
    await this.#warm?.close();
  }

  async close(): Promise<void> {
    await this.stopPreparing();
    await Promise.all([...this.#live].map((sandbox) => sandbox.destroy()));
    await Promise.all([...this.#cleanUps, this.#starter.close()]);
  }

  async #acquireFresh(request: AcquireRequest, options: CallOptions): Promise<GvisorSandbox> {
    this.#starter.check(request);
    // An invalid image fails here, and is not retried in the background.
    await this.#starter.images.prepare(request.spec.image ?? this.#options.defaultImage, options);
    const taken = await this.#warm?.take(request, options);
    if (taken !== undefined) return this.#own(taken);
    await this.#makeRoom(options);
    return this.#own(await this.#starter.fresh(request, options));
  }

  async #makeRoom({ signal }: CallOptions): Promise<void> {
    if (this.#warm !== undefined) await unlessAborted(this.#warm.giveWay(), signal);
  }

  /** From here on it belongs to a caller. */
  #own(sandbox: GvisorSandbox): GvisorSandbox {
    this.#live.add(sandbox);
    return sandbox;
  }
}
