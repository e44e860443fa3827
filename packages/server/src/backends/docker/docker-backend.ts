import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { AGENT_FILE_EXTRAS } from "../agent/agent-files.ts";
import { loadFilesystem } from "../agent/filesystem-snapshot.ts";
import { newResyncToken } from "../agent/resync.ts";
import type {
  AcquireRequest,
  Capabilities,
  Health,
  Resources,
  SandboxBackend,
  SandboxHandle,
  SnapshotPayload,
} from "../backend.ts";
import { agentArchive } from "./agent-archive.ts";
import type { DockerSandbox } from "./docker-sandbox.ts";
import type { EngineInfo } from "./engine/answers.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";
import { statusOf } from "./engine/engine-errors.ts";
import { checkSnapshot, loadSnapshot } from "./image-snapshot.ts";
import { DockerImages } from "./images.ts";
import { labelsOf, newContainerName } from "./labels.ts";
import { startContainer, type LaunchPad } from "./launch.ts";
import { mountsOf, type AllowedMount } from "./mounts.ts";
import { checkPersistence } from "./persistence.ts";
import { resumeContainer } from "./resume.ts";
import { sandboxConfig } from "./sandbox-config.ts";

const START_TIMEOUT_MS = 60_000;
const LOADS = ["docker-image-tar", "workspace-tar"] as const;

export interface DockerBackendOptions {
  readonly engine: DockerEngine;
  readonly agentPath: string;
  /** This process; its containers carry the name. */
  readonly instanceId: string;
  /** The installation: whose containers may be found again and put in order. */
  readonly owner: string;
  readonly defaultImage: string;
  /** Where clients' `tar:` images may be. */
  readonly imageDirectories: readonly string[];
  readonly defaultResources: Resources;
  /** See the agent's dead man's switch; 0: none. */
  readonly heartbeatMs: number;
  /** A runtime of the engine's configuration, such as runsc; absent: the engine's default. */
  readonly runtime?: string | undefined;
  /** The engine's network for sandboxes that ask for one; absent: they get none. */
  readonly network?: string | undefined;
  /** What sandboxes may mount; nothing by default. */
  readonly allowedMounts?: readonly AllowedMount[];
  /** How long an agent may take to answer after the start of its container. */
  readonly startTimeoutMs?: number;
  /** After everything of this process was stopped. */
  readonly onClosed?: () => Promise<void>;
}

/** A Docker engine: one container for each sandbox, with our agent as its PID 1, attached through the engine. */
export class DockerBackend implements SandboxBackend {
  readonly name = "docker";
  readonly capabilities: Capabilities;
  readonly loads = LOADS;
  readonly keeps = AGENT_FILE_EXTRAS;
  readonly #options: DockerBackendOptions;
  readonly #info: EngineInfo;
  readonly #images: DockerImages;
  readonly #pad: LaunchPad;
  readonly #live = new Map<string, DockerSandbox>();
  #persistenceChecked: boolean;

  private constructor(options: DockerBackendOptions, info: EngineInfo, archive: Uint8Array, hasNetwork: boolean) {
    this.#options = options;
    this.#info = info;
    this.#images = new DockerImages(options.engine, {
      trustedImages: [options.defaultImage],
      imageDirectories: options.imageDirectories,
    });
    this.#pad = {
      engine: options.engine,
      agentArchive: archive,
      instanceId: options.instanceId,
      architecture: info.Architecture,
      heartbeatMs: options.heartbeatMs,
      startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
      onEnded: (sandbox) => this.#live.delete(sandbox.containerId),
    };
    this.#persistenceChecked = options.runtime === undefined;
    this.capabilities = {
      snapshot: "filesystem",
      filesystemSnapshot: true,
      pty: true,
      files: true,
      connect: true,
      network: hasNetwork,
      limits: info.MemoryLimit && info.CpuCfsQuota && info.PidsLimit,
      selfHosted: true,
      outlivesServer: true,
    };
  }

  static async open(options: DockerBackendOptions): Promise<DockerBackend> {
    const { engine, agentPath, network } = options;
    const [info, archive] = await Promise.all([engine.info(), agentArchive(agentPath)]);
    if (info.OSType !== "linux") {
      throw new SandboxerError(
        "backend_unavailable",
        `The Docker engine at ${engine.address} runs no Linux containers.`,
      );
    }
    const hasNetwork = network !== undefined && (await engine.networkExists(network));
    return new DockerBackend(options, info, archive, hasNetwork);
  }

  async probe(): Promise<Health> {
    const { engine, defaultImage, runtime } = this.#options;
    try {
      const info = await engine.info();
      if (runtime !== undefined && !info.Runtimes.includes(runtime)) {
        const remedy = "Add it to the engine's daemon.json and restart the engine.";
        return { ok: false, summary: `The Docker engine has no runtime ${runtime}.`, remedy };
      }
      const details = {
        version: info.ServerVersion,
        address: engine.address,
        runtime: runtime ?? info.DefaultRuntime,
        storage: info.Driver,
        image: `${defaultImage}${(await this.#images.isPresent(defaultImage)) ? "" : " (not there yet)"}`,
        full_snapshots: `no: ${whyNoMemory(info)}`,
      };
      return { ok: true, summary: `Docker ${info.ServerVersion} at ${engine.address}`, details };
    } catch (error) {
      const remedy = error instanceof SandboxerError ? error.hint : "sandboxer doctor";
      return { ok: false, summary: (error as Error).message, remedy };
    }
  }

  async acquire(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle> {
    return this.#acquire(request, options);
  }

  async tryResume(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle | undefined> {
    const live = (containerId: string): DockerSandbox | undefined => this.#live.get(containerId);
    const resumed = await resumeContainer(this.#pad, this.#options.owner, request, live, options);
    if (resumed !== undefined) this.#live.set(resumed.containerId, resumed);
    return resumed;
  }

  async acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions = {},
  ): Promise<SandboxHandle> {
    if (snapshot.kind === "docker-image-tar") return this.#acquireFromImage(request, snapshot, options);
    if (snapshot.kind === "workspace-tar") return this.#acquireWithFiles(request, snapshot, options);
    throw new SandboxerError("image_incompatible", `A snapshot of kind ${snapshot.kind} cannot be loaded by Docker.`);
  }

  /** Stops what this process started; it can be resumed. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#live.values()].map((sandbox) => sandbox.stop()));
    this.#options.engine.close();
    await this.#options.onClosed?.();
  }

  async #acquire(request: AcquireRequest, options: CallOptions): Promise<DockerSandbox> {
    options.signal?.throwIfAborted();
    this.#check(request);
    const image = await this.#images.resolve(request.spec.image ?? this.#options.defaultImage, options);
    return this.#make(request, image, options);
  }

  async #acquireFromImage(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
  ): Promise<DockerSandbox> {
    this.#check(request);
    const { engine } = this.#options;
    const loadable = await checkSnapshot(snapshot, this.#info.Architecture);
    options.signal?.throwIfAborted();
    const image = await loadSnapshot(engine, loadable, options);
    try {
      return await this.#make(request, image, options);
    } catch (error) {
      // Another sandbox of the same snapshot took it along when it was destroyed.
      if (statusOf(error) === 404) return this.#make(request, await loadSnapshot(engine, loadable, options), options);
      await engine.removeImage(image);
      throw error;
    }
  }

  /** Files of whatever backend, into a fresh sandbox. */
  async #acquireWithFiles(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
  ): Promise<DockerSandbox> {
    const path = snapshot.members[0]?.path;
    if (path === undefined) throw new SandboxerError("image_damaged", "The snapshot has no files.");
    const sandbox = await this.#acquire(request, options);
    try {
      await loadFilesystem(sandbox.rootFiles, path);
      return sandbox;
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }

  async #make(request: AcquireRequest, imageId: string, options: CallOptions): Promise<DockerSandbox> {
    const { engine, instanceId, owner, runtime, network, allowedMounts = [] } = this.#options;
    const config = sandboxConfig({
      request,
      imageId,
      labels: labelsOf(request, owner),
      resources: { ...this.#options.defaultResources, ...request.spec.resources },
      mounts: mountsOf(request.spec, allowedMounts),
      network: request.spec.network === "none" ? undefined : network,
      runtime,
      resyncToken: newResyncToken(),
    });
    options.onProgress?.({ phase: "starting" });
    const id = await engine.createContainer(newContainerName(instanceId), config).catch((error: unknown) => {
      throw forDiskLimit(error, request);
    });
    try {
      options.signal?.throwIfAborted();
      const container = await engine.container(id);
      if (container === undefined) throw new SandboxerError("backend_unavailable", "The new container is gone.");
      const sandbox = await startContainer(this.#pad, container, request, options);
      if (!this.#persistenceChecked) await checkPersistence(engine, sandbox, runtime ?? "");
      this.#persistenceChecked = true;
      this.#live.set(id, sandbox);
      return sandbox;
    } catch (error) {
      await engine.removeContainer(id);
      throw error;
    }
  }

  #check({ spec }: AcquireRequest): void {
    if (spec.network !== "none" && !this.capabilities.network) {
      const { network } = this.#options;
      const reason = network === undefined ? "does not allow it" : `has no Docker network ${network}`;
      throw new SandboxerError("not_supported", `Sandboxes cannot have a network: the server ${reason}.`, {
        hint: "Start the server with --allow-network, and name a network of the engine with --docker-network.",
      });
    }
    const { memoryBytes, cpus, processes } = spec.resources;
    const asked = memoryBytes !== undefined || cpus !== undefined || processes !== undefined;
    if (asked && !this.capabilities.limits) {
      throw new SandboxerError("not_supported", "The Docker engine cannot limit memory, CPU and processes here.");
    }
    mountsOf(spec, this.#options.allowedMounts ?? []);
  }
}

/** Also where they work, the engine's checkpoints cannot give the agent its connection back. */
function whyNoMemory({ ExperimentalBuild }: EngineInfo): string {
  if (!ExperimentalBuild) return "the engine's checkpoints are experimental, and off";
  return "the engine's checkpoints lose the connection to the agent";
}

function forDiskLimit(error: unknown, { spec }: AcquireRequest): unknown {
  const refused = error instanceof SandboxerError && /storage-opt|storage opt/i.test(error.message);
  if (!refused || spec.resources.diskBytes === undefined) return error;
  return new SandboxerError("not_supported", "The Docker engine's storage driver cannot limit the disk.", {
    cause: error,
    hint: "Ask for no disk limit, or keep the engine's data on XFS with project quotas, btrfs or ZFS.",
  });
}
