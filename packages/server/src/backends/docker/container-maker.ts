import { SandboxerError, type NetworkPolicy } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { newResyncToken } from "../agent/resync.ts";
import type { AcquireRequest, Resources, SnapshotPayload } from "../backend.ts";
import { checkCheckpoint, type LoadableCheckpoint } from "./checkpoint-snapshot.ts";
import type { DockerSandbox } from "./docker-sandbox.ts";
import type { EngineInfo } from "./engine/answers.ts";
import type { ContainerConfig } from "./engine/container-config.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";
import { statusOf } from "./engine/engine-errors.ts";
import { checkSnapshot, loadSnapshot } from "./image-snapshot.ts";
import { labelsOf, newContainerName } from "./labels.ts";
import { loadContainer, startContainer, type LaunchPad } from "./launch.ts";
import { mountsOf, type AllowedMount } from "./mounts.ts";
import { sandboxConfig } from "./sandbox-config.ts";
import { needsProxy, networkIsOff, type NetworkMode } from "../network-mode.ts";
import { AGENT_FOLDER } from "../agent/agent-place.ts";

export interface MakerOptions {
  readonly engine: DockerEngine;
  /** This process; its containers carry the name. */
  readonly instanceId: string;
  /** The installation: whose containers may be found again and cleaned up. */
  readonly owner: string;
  readonly defaultResources: Resources;
  /** A runtime of the engine's configuration, such as runsc; absent: the engine's default. */
  readonly runtime?: string | undefined;
  /** Whether sandboxes may have network access, and how: through the server's proxy, or by the engine's network. */
  readonly networkMode?: NetworkMode | undefined;
  /** The engine's network for sandboxes that do not use the proxy; absent: none. */
  readonly network?: string | undefined;
  /** Host paths that sandboxes may mount; none by default. */
  readonly allowedMounts?: readonly AllowedMount[];
  /** Whether programs may run as root; absent: no. */
  readonly rootInside?: boolean;
}

/** Creates the container of a request, from an image or a snapshot. On failure nothing is left behind. */
export class ContainerMaker {
  readonly hasNetwork: boolean;
  readonly hasLimits: boolean;
  readonly #options: MakerOptions;
  readonly #info: EngineInfo;
  readonly #pad: LaunchPad;
  #persistenceChecked: boolean;

  constructor(options: MakerOptions, info: EngineInfo, hasNetwork: boolean, pad: LaunchPad) {
    this.#options = options;
    this.#info = info;
    this.#pad = pad;
    this.hasNetwork = hasNetwork;
    this.hasLimits = info.MemoryLimit && info.CpuCfsQuota && info.PidsLimit;
    this.#persistenceChecked = options.runtime === undefined;
  }

  /** Refuses unsupported requests, before anything is done. */
  check({ spec }: AcquireRequest): void {
    this.#checkNetwork(spec.network);
    const { memoryBytes, cpus, processes } = spec.resources;
    const asked = memoryBytes !== undefined || cpus !== undefined || processes !== undefined;
    if (asked && !this.hasLimits) {
      throw new SandboxerError("not_supported", "The Docker engine cannot limit memory, CPU and processes here.");
    }
    mountsOf(spec, this.#options.allowedMounts ?? []);
  }

  get networkMode(): NetworkMode {
    const { network, networkMode = network === undefined ? "proxy" : "auto" } = this.#options;
    return networkMode;
  }

  #checkNetwork(policy: NetworkPolicy): void {
    const { network } = this.#options;
    const { networkMode } = this;
    if (policy === "none" || networkMode === "proxy" || networkMode === "auto") return;
    if (networkMode === "off") throw networkIsOff();
    if (!this.hasNetwork) {
      const reason = `has no Docker network ${network ?? ""}`;
      throw new SandboxerError("not_supported", `Sandboxes cannot have network access: the server ${reason}.`, {
        hint: "Choose a Docker network with --docker-network, or start the server with --network-mode proxy.",
      });
    }
    if (typeof policy !== "string") throw needsProxy("Docker's own networks cannot apply lists");
  }

  /** The engine's network for a policy; undefined: none, and the proxy if the policy has any. */
  #networkFor(policy: NetworkPolicy): string | undefined {
    const own = this.networkMode === "namespace" || this.networkMode === "auto";
    return own && policy === "open" && this.hasNetwork ? this.#options.network : undefined;
  }

  async make(
    request: AcquireRequest,
    imageId: string,
    options: CallOptions,
    checkpoint?: LoadableCheckpoint,
  ): Promise<DockerSandbox> {
    const { engine, instanceId, runtime } = this.#options;
    const config = this.#configOf(request, imageId, checkpoint);
    options.onProgress?.({ phase: "starting" });
    const id = await engine.createContainer(newContainerName(instanceId), config).catch((error: unknown) => {
      throw forDiskLimit(error, request);
    });
    try {
      options.signal?.throwIfAborted();
      const container = await engine.container(id);
      if (container === undefined) throw new SandboxerError("backend_unavailable", "The new container was removed.");
      const sandbox =
        checkpoint === undefined
          ? await startContainer(this.#pad, container, request, options)
          : await loadContainer(this.#pad, container, request, checkpoint, options);
      if (!this.#persistenceChecked) await checkPersistence(engine, sandbox, runtime ?? "");
      this.#persistenceChecked = true;
      return sandbox;
    } catch (error) {
      await engine.removeContainer(id);
      throw error;
    }
  }

  /** With the files of a snapshot. */
  async makeFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
  ): Promise<DockerSandbox> {
    this.check(request);
    return this.#withImage(snapshot, options, (image) => this.make(request, image, options));
  }

  /** With the files, memory and processes of a snapshot. */
  async load(request: AcquireRequest, snapshot: SnapshotPayload, options: CallOptions): Promise<DockerSandbox> {
    this.check(request);
    const { HostConfig } = this.#configOf(request, "", undefined);
    const Runtime = HostConfig.Runtime ?? this.#info.DefaultRuntime;
    const checkpoint = checkCheckpoint(snapshot, { ...HostConfig, Runtime });
    return this.#withImage(snapshot, options, (image) => this.make(request, image, options, checkpoint));
  }

  /** Loads the image of a snapshot into the engine. */
  async #withImage(
    snapshot: SnapshotPayload,
    options: CallOptions,
    make: (imageId: string) => Promise<DockerSandbox>,
  ): Promise<DockerSandbox> {
    const { engine } = this.#options;
    const loadable = await checkSnapshot(snapshot, this.#info.Architecture);
    options.signal?.throwIfAborted();
    const image = await loadSnapshot(engine, loadable, options);
    try {
      return await make(image);
    } catch (error) {
      // Another sandbox of the same snapshot removed it when it was deleted.
      if (statusOf(error) === 404) return make(await loadSnapshot(engine, loadable, options));
      await engine.removeImage(image);
      throw error;
    }
  }

  /** A container that continues from a checkpoint has the token of its agent in its image. */
  #configOf(request: AcquireRequest, imageId: string, checkpoint: LoadableCheckpoint | undefined): ContainerConfig {
    const { owner, runtime, allowedMounts = [], rootInside = false } = this.#options;
    return sandboxConfig({
      request,
      imageId,
      labels: labelsOf(
        request,
        owner,
        checkpoint === undefined ? { resyncToken: newResyncToken() } : { generation: checkpoint.generation },
      ),
      resources: { ...this.#options.defaultResources, ...request.spec.resources },
      mounts: mountsOf(request.spec, allowedMounts),
      network: this.#networkFor(request.spec.network),
      runtime,
      rootInside,
    });
  }
}

function forDiskLimit(error: unknown, { spec }: AcquireRequest): unknown {
  const refused = error instanceof SandboxerError && /storage-opt|storage opt/i.test(error.message);
  if (!refused || spec.resources.diskBytes === undefined) return error;
  return new SandboxerError("not_supported", "The Docker engine's storage driver cannot limit the disk.", {
    cause: error,
    hint: "Omit the disk limit, or keep the engine's data on XFS with project quotas, btrfs or ZFS.",
  });
}

const MARK = `${AGENT_FOLDER}/seen-by-the-engine`;

/**
 * Refuses a runtime that keeps writes to itself: a stopped sandbox would lose its files, and a snapshot would have
 * none. runsc does so without `--overlay2=none`. https://gvisor.dev/docs/user_guide/filesystem/
 */
async function checkPersistence(engine: DockerEngine, sandbox: DockerSandbox, runtime: string): Promise<void> {
  await sandbox.rootFiles.write(MARK, new Uint8Array());
  if (await engine.hasPath(sandbox.containerId, MARK)) return sandbox.rootFiles.remove(MARK);
  throw new SandboxerError("backend_unavailable", `The runtime ${runtime} keeps files where Docker cannot see them.`, {
    hint: `In the engine's daemon.json, give the runtime the arguments "runtimeArgs": ["--overlay2=none"], and restart the engine.`,
  });
}
