import { readFile } from "node:fs/promises";
import { arch } from "node:os";
import { dirname, join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { AGENT_FILE_EXTRAS } from "../agent/agent-files.ts";
import { loadFilesystem } from "../agent/filesystem-snapshot.ts";
import type {
  AcquireRequest,
  Capabilities,
  Health,
  SandboxBackend,
  SandboxHandle,
  SnapshotPayload,
  WarmFigures,
} from "../backend.ts";
import { placeAgent, placeSavedAgent, type PlacedAgent } from "./agent-placement.ts";
import { detectCgroups, type CgroupVersion } from "./cgroups.ts";
import { AGENT_MEMBER, CONFIG_MEMBER, ENGINE_MEMBERS, FILES_MEMBER, type GvisorSandbox } from "./gvisor-sandbox.ts";
import { checkRequirements, ImageRequirements, OVERLAY, readCpuFeatures } from "./image-requirements.ts";
import { launch, type Launch } from "./launch.ts";
import { NETWORK_NOT_ALLOWED, notSupported, type NetworkSupport } from "./network/network-support.ts";
import { ServerNetwork } from "./network/server-network.ts";
import { buildSpec, cgroupLimits, relocateSpec, type CompleteResources } from "./oci-spec.ts";
import { ImageResolver } from "./root-filesystem/resolve-image.ts";
import type { RootFilesystem } from "./root-filesystem/root-filesystem.ts";
import type { RunDirectory } from "./run-directory.ts";
import type { Platform } from "./runsc.ts";
import { hostnameOf } from "./sandbox-hostname.ts";
import { parseSavedSpec } from "./saved-spec.ts";
import { PipeSupply } from "./stdio-pipes.ts";
import { refuseHook } from "./warm/restored-hook.ts";
import { WarmSandboxes, type WarmOptions, type WarmSource } from "./warm/warm-sandboxes.ts";

const LOADS = ["gvisor-checkpoint", "workspace-tar"] as const;

export interface GvisorBackendOptions {
  readonly engine: { readonly path: string; readonly version: string; readonly sha256: string };
  readonly platform: Platform;
  readonly agentPath: string;
  readonly runDirectory: RunDirectory;
  readonly cacheDirectory: string;
  readonly defaultImage: string;
  readonly imageDirectories: readonly string[];
  readonly defaultResources: CompleteResources;
  /** See the agent's dead man's switch; 0: none. */
  readonly heartbeatMs: number;
  /** A sandbox in which nothing runs dozes after so long without a request; absent or 0: never. */
  readonly dozeAfterMs?: number;
  /** Absent: it is not allowed. */
  readonly network?: NetworkSupport;
  /** Absent: no sandbox is started ahead of the need. */
  readonly warm?: WarmOptions;
}

interface Machine {
  readonly agent: PlacedAgent;
  readonly cgroups: CgroupVersion;
  readonly cpuFeatures: readonly string[];
}

/** gVisor, driven through runsc: one attached runsc process for each sandbox, with our agent as its PID 1. */
export class GvisorBackend implements SandboxBackend {
  readonly name = "gvisor";
  readonly capabilities: Capabilities;
  readonly loads = LOADS;
  readonly keeps = AGENT_FILE_EXTRAS;
  readonly #options: GvisorBackendOptions;
  readonly #machine: Machine;
  readonly #images: ImageResolver;
  readonly #live = new Set<GvisorSandbox>();
  readonly #cleanUps = new Set<Promise<void>>();
  readonly #pipes: PipeSupply;
  readonly #networkSupport: NetworkSupport;
  readonly #network: ServerNetwork | undefined;
  readonly #warm: WarmSandboxes | undefined;

  private constructor(options: GvisorBackendOptions, machine: Machine) {
    this.#options = options;
    this.#machine = machine;
    this.#pipes = new PipeSupply(options.runDirectory.workDirectory, machine.agent.path);
    this.#pipes.prepare();
    this.#images = new ImageResolver({
      cacheDirectory: join(options.cacheDirectory, "root-filesystems"),
      trustedImages: [options.defaultImage],
      imageDirectories: options.imageDirectories,
    });
    const support = options.network ?? NETWORK_NOT_ALLOWED;
    this.#networkSupport = support;
    this.#network = support.ok ? new ServerNetwork(support.tools, options.runDirectory) : undefined;
    this.#warm = options.warm === undefined ? undefined : new WarmSandboxes(options.warm, this.#warmSource());
    this.capabilities = {
      snapshot: "full",
      filesystemSnapshot: true,
      pty: true,
      files: true,
      connect: true,
      network: support.ok,
      limits: machine.cgroups !== "none",
      selfHosted: true,
      outlivesServer: false,
    };
  }

  get defaultResources(): CompleteResources {
    return this.#options.defaultResources;
  }

  get warm(): WarmFigures | undefined {
    return this.#warm?.figures;
  }

  static async open(options: GvisorBackendOptions): Promise<GvisorBackend> {
    const agent = await placeAgent(options.agentPath, options.cacheDirectory);
    return new GvisorBackend(options, { agent, cgroups: await detectCgroups(), cpuFeatures: await readCpuFeatures() });
  }

  async probe(): Promise<Health> {
    const { engine, platform, defaultImage } = this.#options;
    try {
      await this.#images.resolve(defaultImage);
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
  ): Promise<SandboxHandle> {
    if (snapshot.kind === "gvisor-checkpoint") return this.#restore(request, snapshot, options);
    if (snapshot.kind === "workspace-tar") return this.#acquireWithFiles(request, snapshot, options);
    throw new SandboxerError("image_incompatible", `A snapshot of kind ${snapshot.kind} cannot be loaded by gVisor.`);
  }

  async stopPreparing(): Promise<void> {
    await this.#warm?.close();
  }

  async close(): Promise<void> {
    await this.stopPreparing();
    await Promise.all([...this.#live].map((sandbox) => sandbox.destroy()));
    await Promise.all([...this.#cleanUps, this.#pipes.close()]);
  }

  async #acquireFresh(request: AcquireRequest, options: CallOptions): Promise<GvisorSandbox> {
    this.#checkRequest(request);
    // What has a wrong image fails here, and is not tried again behind anybody's back.
    await this.#images.resolve(request.spec.image ?? this.#options.defaultImage);
    return this.#own((await this.#warm?.take(request, options)) ?? (await this.#startFresh(request, options)));
  }

  async #startFresh(request: AcquireRequest, options: CallOptions, hurry?: AbortSignal): Promise<GvisorSandbox> {
    const rootFilesystem = await this.#images.resolve(request.spec.image ?? this.#options.defaultImage);
    const { agent } = this.#machine;
    return this.#launch(request, rootFilesystem, agent, 0, options, {
      ...(hurry === undefined ? {} : { hurry }),
      spec: (cgroupsPath) =>
        buildSpec({
          rootFilesystem,
          agentDirectory: agent.directory,
          hostname: hostnameOf(request.sandboxId),
          resources: this.#resources(request),
          cgroupsPath,
        }),
    });
  }

  #warmSource(): WarmSource {
    const { defaultImage, defaultResources } = this.#options;
    return {
      defaults: { image: defaultImage, resources: defaultResources },
      live: () => this.#live.size,
      start: async (request, { signal, hurry }) => {
        const sandbox = await this.#startFresh(request, { signal }, hurry);
        await refuseHook(sandbox);
        return sandbox;
      },
    };
  }

  /** From here on somebody has it. */
  #own(sandbox: GvisorSandbox): GvisorSandbox {
    this.#live.add(sandbox);
    return sandbox;
  }

  async #restore(request: AcquireRequest, snapshot: SnapshotPayload, options: CallOptions): Promise<SandboxHandle> {
    const parsed = ImageRequirements.safeParse(snapshot.requirements);
    if (!parsed.success) throw new SandboxerError("image_damaged", "The image does not say what it needs.");
    const wanted = parsed.data;
    const rootFilesystem = await this.#images.resolve(wanted.root_filesystem.image);
    const { engine, platform, cacheDirectory } = this.#options;
    const { cpuFeatures } = this.#machine;
    const support = this.#networkSupport;
    const network = support.ok ? request.spec.network : "none";
    const whyNoNetwork = support.ok ? undefined : support.reason;
    checkRequirements(
      wanted,
      { network, whyNoNetwork, engineVersion: engine.version, platform, cpuFeatures },
      rootFilesystem.identity,
    );
    // After what differs: an image with a network is refused for that.
    this.#checkRequest(request);
    const paths = memberPaths(snapshot, [...ENGINE_MEMBERS, CONFIG_MEMBER, AGENT_MEMBER]);
    const agent = await placeSavedAgent(paths[AGENT_MEMBER]!, wanted.agent_sha256, cacheDirectory);
    const saved = parseSavedSpec(await readFile(paths[CONFIG_MEMBER]!, "utf8"));
    const hostname = hostnameOf(request.sandboxId);
    const restored = await this.#launch(request, rootFilesystem, agent, wanted.generation + 1, options, {
      spec: (cgroupsPath) =>
        relocateSpec(saved, { rootFilesystem, agentDirectory: agent.directory, hostname, cgroupsPath }),
      imageDirectory: dirname(paths[ENGINE_MEMBERS[0]!]!),
    });
    return this.#own(restored);
  }

  async #acquireWithFiles(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
  ): Promise<SandboxHandle> {
    const paths = memberPaths(snapshot, [FILES_MEMBER]);
    const sandbox = await this.#acquireFresh(request, options);
    try {
      await loadFilesystem(sandbox.rootFiles, paths[FILES_MEMBER]!);
      return sandbox;
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }

  async #launch(
    request: AcquireRequest,
    rootFilesystem: RootFilesystem,
    agent: PlacedAgent,
    generation: number,
    options: CallOptions,
    how: Pick<Launch, "spec" | "imageDirectory" | "hurry">,
  ): Promise<GvisorSandbox> {
    const { engine, platform, runDirectory, heartbeatMs, dozeAfterMs = 0 } = this.#options;
    const { cgroups } = this.#machine;
    const shared = { pipes: this.#pipes, network: this.#network };
    const pad = { enginePath: engine.path, platform, runDirectory, cgroups, heartbeatMs, dozeAfterMs, ...shared };
    const requirements: ImageRequirements = {
      engine: { version: engine.version, sha256: engine.sha256 },
      platform,
      overlay: OVERLAY,
      network: request.spec.network,
      architecture: arch(),
      cpu_features: [...this.#machine.cpuFeatures],
      root_filesystem: { image: rootFilesystem.image, ...rootFilesystem.identity },
      agent_sha256: agent.sha256,
      generation,
    };
    const plan: Launch = {
      request,
      agent,
      rootPath: rootFilesystem.path,
      limits: cgroupLimits(this.#resources(request)),
      diskLimitBytes: this.#resources(request).diskBytes,
      requirements,
      onEnded: (ended, cleanUp) => {
        this.#live.delete(ended);
        this.#cleanUps.add(cleanUp);
        void cleanUp.finally(() => this.#cleanUps.delete(cleanUp));
      },
      ...how,
    };
    return launch(pad, plan, options);
  }

  #checkRequest(request: AcquireRequest): void {
    const { network, resources } = request.spec;
    if (network !== "none" && !this.#networkSupport.ok) throw notSupported(this.#networkSupport);
    const asked = resources.memoryBytes !== undefined || resources.cpus !== undefined;
    if (asked && !this.capabilities.limits) {
      throw new SandboxerError(
        "not_supported",
        "Limits on memory and CPU need writable cgroups, and this server has none.",
      );
    }
  }

  #resources(request: AcquireRequest): CompleteResources {
    return { ...this.#options.defaultResources, ...request.spec.resources };
  }
}

function memberPaths(snapshot: SnapshotPayload, names: readonly string[]): Record<string, string> {
  const members = new Map(snapshot.members.map((member) => [member.name, member.path]));
  return Object.fromEntries(
    names.map((name) => {
      const path = members.get(name);
      if (path === undefined) throw new SandboxerError("image_damaged", `The image has no member ${name}.`);
      return [name, path];
    }),
  );
}
