import { Buffer } from "node:buffer";
import { readFile } from "node:fs/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { pack } from "tar-stream";
import type { CallOptions } from "../../support/call-options.ts";
import { loadFilesystem } from "../agent/load-filesystem.ts";
import type {
  AcquireRequest,
  Capabilities,
  Health,
  SandboxBackend,
  SandboxHandle,
  SnapshotPayload,
} from "../backend.ts";
import { whyNoMemory, type WhyNoMemory } from "./checkpoint-trial.ts";
import { ContainerMaker, type MakerOptions } from "./container-maker.ts";
import type { DockerSandbox } from "./docker-sandbox.ts";
import type { EngineInfo } from "./engine/answers.ts";
import { DockerImages } from "./images.ts";
import { labelsToFind } from "./labels.ts";
import type { LaunchPad } from "./launch.ts";
import { resumeContainer } from "./resume.ts";
import { DOCKER } from "../traits.ts";
import { AGENT_FOLDER, AGENT_PATH } from "../agent/agent-place.ts";

const START_TIMEOUT_MS = 60_000;

export interface DockerBackendOptions extends MakerOptions {
  readonly agentPath: string;
  readonly defaultImage: string;
  /** Folders that may contain clients' `tar:` images. */
  readonly imageDirectories: readonly string[];
  /** See the agent's dead man's switch; 0: none. */
  readonly heartbeatMs: number;
  /** How long an agent may take to answer after its container started. */
  readonly startTimeoutMs?: number;
  /** Called after everything of this process was stopped. */
  readonly onClosed?: () => Promise<void>;
}

/** A Docker engine: one container for each sandbox, with our agent as its PID 1, attached through the engine. */
export class DockerBackend implements SandboxBackend {
  readonly name = DOCKER.name;
  readonly loads = DOCKER.loads;
  readonly keeps = DOCKER.keeps;
  readonly #options: DockerBackendOptions;
  readonly #images: DockerImages;
  readonly #pad: LaunchPad;
  readonly #live = new Map<string, DockerSandbox>();
  readonly #maker: ContainerMaker;
  #whyNoMemory: WhyNoMemory = "it was not tried";

  private constructor(options: DockerBackendOptions, info: EngineInfo, archive: Uint8Array, hasNetwork: boolean) {
    this.#options = options;
    this.#images = new DockerImages(options.engine, {
      trustedImages: [options.defaultImage],
      imageDirectories: options.imageDirectories,
    });
    this.#pad = {
      ...options,
      rootFolder: info.DockerRootDir,
      agentArchive: archive,
      architecture: info.Architecture,
      engineVersion: info.ServerVersion,
      whyNoMemory: () => this.#whyNoMemory,
      startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
      onEnded: (sandbox) => this.#live.delete(sandbox.containerId),
    };
    this.#maker = new ContainerMaker(options, info, hasNetwork, this.#pad);
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
    const backend = new DockerBackend(options, info, archive, hasNetwork);
    await backend.#tryCheckpoints(info);
    return backend;
  }

  get capabilities(): Capabilities {
    return {
      ...DOCKER.capabilities,
      snapshot: this.#whyNoMemory === undefined ? "full" : "filesystem",
      network: this.#maker.networkMode !== "off" && (this.#maker.networkMode !== "namespace" || this.#maker.hasNetwork),
      limits: this.#maker.hasLimits,
      root: this.#options.rootInside === true,
    };
  }

  async probe(): Promise<Health> {
    const { engine, defaultImage, runtime } = this.#options;
    try {
      const info = await engine.info();
      if (runtime !== undefined && !info.Runtimes.includes(runtime)) {
        const remedy = "Add it to the engine's daemon.json and restart the engine.";
        return { ok: false, summary: `The Docker engine has no runtime ${runtime}.`, remedy };
      }
      // The engine may have another version by now.
      await this.#tryCheckpoints(info);
      const details = {
        version: info.ServerVersion,
        address: engine.address,
        runtime: runtime ?? info.DefaultRuntime,
        storage: info.Driver,
        image: `${defaultImage}${(await this.#images.isPresent(defaultImage)) ? "" : " (not downloaded yet)"}`,
        full_snapshots: this.#whyNoMemory === undefined ? "yes" : `no: ${this.#whyNoMemory}`,
      };
      const saved = this.#whyNoMemory === undefined ? "memory and files" : `files only: ${this.#whyNoMemory}`;
      return { ok: true, summary: `Docker ${info.ServerVersion} at ${engine.address}; it saves ${saved}`, details };
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
    const resumed = await resumeContainer(this.#pad, request, live, options);
    if (resumed !== undefined) this.#live.set(resumed.containerId, resumed);
    return resumed;
  }

  async acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions = {},
  ): Promise<SandboxHandle> {
    if (snapshot.kind === "docker-image-tar")
      return this.#listed(this.#maker.makeFromSnapshot(request, snapshot, options));
    if (snapshot.kind === "docker-checkpoint") return this.#acquireWithMemory(request, snapshot, options);
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
    this.#maker.check(request);
    const image = await this.#images.resolve(request.spec.image ?? this.#options.defaultImage, options);
    return this.#listed(this.#maker.make(request, image, options));
  }

  async #acquireWithMemory(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
  ): Promise<DockerSandbox> {
    if (this.#whyNoMemory !== undefined) {
      throw new SandboxerError("not_supported", `Docker cannot load memory here: ${this.#whyNoMemory}`, {
        hint: "Restore the snapshot on a server with the same Docker engine and runtime as where it was taken.",
      });
    }
    const sandbox = await this.#listed(this.#maker.load(request, snapshot, options));
    await this.#removeOlder(sandbox);
    return sandbox;
  }

  /** Stopped containers with its id are an earlier state: their server died without a save. */
  async #removeOlder({ sandboxId, containerId }: DockerSandbox): Promise<void> {
    const { engine } = this.#options;
    const found = await engine.listContainers(labelsToFind({ sandboxId }));
    for (const { Id } of found) {
      if (Id === containerId) continue;
      if ((await engine.container(Id))?.State.Status === "exited") await engine.removeContainer(Id);
    }
  }

  /** Loads files of any backend into a fresh sandbox. */
  async #acquireWithFiles(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
  ): Promise<DockerSandbox> {
    const path = snapshot.members[0]?.path;
    if (path === undefined) throw new SandboxerError("image_damaged", "The snapshot has no files.");
    const sandbox = await this.#acquire(request, options);
    try {
      await loadFilesystem(sandbox.rawFiles, path);
      return sandbox;
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }

  async #tryCheckpoints(info: EngineInfo): Promise<void> {
    this.#whyNoMemory = await whyNoMemory(this.#maker, this.#pad, info, this.#options.runtime);
  }

  async #listed(making: Promise<DockerSandbox>): Promise<DockerSandbox> {
    const sandbox = await making;
    this.#live.set(sandbox.containerId, sandbox);
    return sandbox;
  }
}

/**
 * The agent as an archive for the root of a container. It is copied in at each start, also if the engine is on another
 * machine, so that a container of an older server runs the agent of this one.
 */
async function agentArchive(agentPath: string): Promise<Uint8Array> {
  const archive = pack();
  archive.entry({ name: `${AGENT_FOLDER.slice(1)}/`, type: "directory", mode: 0o755 });
  archive.entry({ name: AGENT_PATH.slice(1), mode: 0o555 }, await readFile(agentPath));
  archive.finalize();
  return Buffer.concat((await Array.fromAsync(archive)) as Buffer[]);
}
