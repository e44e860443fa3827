import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { arch, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { SandboxerError, type NetworkPolicy } from "@sandboxer/protocol";
import { z } from "zod";
import type { ImageLibrary } from "../../images/image-library.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { systemClock } from "../../support/clock.ts";
import { loadFilesystem } from "../agent/load-filesystem.ts";
import type { AcquireRequest, PreparedState, SnapshotPayload } from "../backend.ts";
import { placeSavedAgent, type PlacedAgent } from "./agent-placement.ts";
import type { CgroupVersion } from "./cgroups.ts";
import { ENGINE_MEMBERS, type Messages } from "./control/engine-control.ts";
import { PagesSupply } from "./control/pages-supply.ts";
import { dialectOf } from "./control/known-builds.ts";
import { AGENT_MEMBER, CONFIG_MEMBER, FILES_MEMBER, type GvisorSandbox } from "./gvisor-sandbox.ts";
import { checkRequirements, ImageRequirements, isMadeBy, OVERLAY } from "./image-requirements.ts";
import { launch, type Launch } from "./launch.ts";
import { networkIsOff, type NetworkMode } from "../network-mode.ts";
import { findNetworkTools, notSupported, type NetworkSupport, type NetworkTools } from "./network/network-support.ts";
import { ServerNetwork } from "./network/server-network.ts";
import { buildSpec, cgroupLimits, relocateSpec, type CompleteResources } from "./oci-spec.ts";
import { ImageResolver } from "./root-filesystem/resolve-image.ts";
import type { RootFilesystem } from "./root-filesystem/root-filesystem.ts";
import { readTraits, type Engine, type EngineSupply, type EngineTraits } from "./engine.ts";
import type { RunDirectory } from "./run-directory.ts";
import type { Platform } from "./runsc.ts";
import { hostnameOf } from "./sandbox-hostname.ts";
import { parseSavedSpec } from "./saved-spec.ts";
import { PipeSupply } from "./stdio-pipes.ts";
import { checkSize } from "./warm/state-size.ts";

const USUAL_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Limits of the page cache that is prepared for saves. */
const MOST_PREPARED_BYTES = 1024 ** 3;
const PREPARED_PART = 1 / 16;
const RESTORED_HOOK = ".sandboxer/restored";

export interface StarterOptions {
  /** The engine of new sandboxes. */
  readonly engine: Omit<Engine, "platform">;
  /** The search path of programs; absent: the usual folders. */
  readonly searchPath?: string;
  readonly platform: Platform;
  /** For images that another engine wrote; absent: they are refused. */
  readonly engines?: EngineSupply;
  readonly agentPath: string;
  readonly runDirectory: RunDirectory;
  readonly cacheDirectory: string;
  readonly defaultImage: string;
  readonly imageDirectories: readonly string[];
  /** Images from registries; absent: there are none. */
  readonly images?: ImageLibrary | undefined;
  readonly defaultResources: CompleteResources;
  /** The common limit of all sandboxes; absent: none. */
  readonly allMemoryBytes?: number;
  /** See the agent's dead man's switch; 0: none. */
  readonly heartbeatMs: number;
  /** How long a sandbox with nothing running may go without a request before it dozes; absent or 0: never. */
  readonly dozeAfterMs?: number;
  /** Whether programs may run as root inside; absent: no. */
  readonly rootInside?: boolean;
  /** Private networks that sandboxes may reach, as CIDRs; absent: none. */
  readonly networkAllowed?: readonly string[];
  /** Whether this machine can give sandboxes networks of their own; absent: it cannot. */
  readonly network?: NetworkSupport | undefined;
  /** Absent: auto. */
  readonly networkMode?: NetworkMode;
  /** See {@link Messages.only}; absent: no. */
  readonly onlyMessages?: boolean;
}

export interface Machine {
  readonly agent: PlacedAgent;
  readonly cgroups: CgroupVersion;
  readonly cpuFeatures: readonly string[];
  /** The traits of the default engine. */
  readonly traits: EngineTraits;
  /** Whether folders of the host can be sealed against writing; otherwise there is no root inside. */
  readonly seals: boolean;
}

/** The parts of a sandbox. */
interface Parts {
  readonly engine: Engine;
  readonly rootFilesystem: RootFilesystem;
  readonly agent: PlacedAgent;
  readonly image: Pick<ImageRequirements, "generation" | "network">;
}

const NO_NAMESPACES = { reason: "network namespaces were not looked for", remedy: "Use --network-mode proxy." };

/** For the warm pool: see {@link Launch}. */
type Unhurried = Pick<Launch, "hurry" | "held">;

/** Starts sandboxes for any purpose. On failure nothing is left of one. */
export class SandboxStarter {
  readonly images: ImageResolver;
  readonly networkMode: NetworkMode;
  readonly #options: StarterOptions;
  readonly #machine: Machine;
  readonly #pipes: PipeSupply;
  readonly #pages: PagesSupply;
  readonly #network: ServerNetwork | undefined;
  readonly #onEnded: Launch["onEnded"];
  /** By path. */
  readonly #traits: Map<string, Promise<EngineTraits>>;

  constructor(options: StarterOptions, machine: Machine, onEnded: Launch["onEnded"]) {
    this.#options = options;
    this.#machine = machine;
    this.#onEnded = onEnded;
    this.#traits = new Map([[options.engine.path, Promise.resolve(machine.traits)]]);
    this.#pipes = new PipeSupply(options.runDirectory.workDirectory, machine.agent.path);
    this.#pipes.prepare();
    this.#pages = new PagesSupply({
      folder: options.runDirectory.pagesDirectory,
      filler: machine.agent.path,
      maxBytes: Math.min(MOST_PREPARED_BYTES, totalmem() * PREPARED_PART),
      clock: systemClock,
    });
    this.images = new ImageResolver({
      cacheDirectory: join(options.cacheDirectory, "root-filesystems"),
      trustedImages: [options.defaultImage],
      imageDirectories: options.imageDirectories,
      library: options.images,
    });
    this.networkMode = options.networkMode ?? "auto";
    const tools = options.network?.ok ? options.network.tools : findNetworkTools(options.searchPath ?? USUAL_FOLDERS);
    const { ip, nft = "nft" } = tools;
    this.#network = ip === undefined ? undefined : this.#serverNetwork({ ip, nft });
  }

  #serverNetwork(tools: NetworkTools): ServerNetwork {
    const { runDirectory, networkAllowed: allowed = [] } = this.#options;
    return new ServerNetwork({ tools, runDirectory, agentPath: this.#machine.agent.path, allowed });
  }

  /** Whether programs may run as root: only where they cannot write to folders of the host. */
  get rootInside(): boolean {
    return this.#options.rootInside === true && this.#machine.seals;
  }

  /** Refuses what this machine cannot offer. */
  check(request: AcquireRequest): void {
    const { network, resources } = request.spec;
    this.#checkNetwork(network);
    const asked = resources.memoryBytes !== undefined || resources.cpus !== undefined;
    if (asked && this.#machine.cgroups === "none") {
      throw new SandboxerError(
        "not_supported",
        "Limits on memory and CPU need writable cgroups, but this server has none.",
      );
    }
  }

  #checkNetwork(policy: NetworkPolicy): void {
    if (policy === "none") return;
    if (this.networkMode === "off") throw networkIsOff();
    if (this.networkMode !== "namespace") return;
    const { network } = this.#options;
    if (network?.ok !== true) throw notSupported(network ?? NO_NAMESPACES);
  }

  /** Whether a new sandbox gets a network of its own, which the proxy then leaves alone. */
  ownsNetwork(policy: NetworkPolicy): boolean {
    const may = this.networkMode === "namespace" || this.networkMode === "auto";
    return may && policy !== "none" && this.#options.network?.ok === true;
  }

  /** The root filesystem that a request asks for; the caller releases it. */
  image({ spec }: AcquireRequest, options: CallOptions): Promise<RootFilesystem> {
    return this.images.resolve(spec.image ?? this.#options.defaultImage, options);
  }

  async fresh(request: AcquireRequest, options: CallOptions, how: Unhurried = {}): Promise<GvisorSandbox> {
    const { agent, traits } = this.#machine;
    const { rootInside } = this;
    const connected = this.ownsNetwork(request.spec.network);
    const image = { generation: 0, network: connected ? ("sandbox" as const) : ("none" as const) };
    return orRelease(await this.image(request, options), (rootFilesystem) =>
      this.#launch(request, { engine: this.#engine, rootFilesystem, agent, image }, options, {
        ...how,
        connected,
        spec: (cgroupsPath) =>
          buildSpec({
            rootFilesystem,
            agentDirectory: agent.directory,
            hostname: hostnameOf(request.sandboxId),
            resources: this.#resources(request),
            cgroupsPath,
            rootInside,
            gainsRights: rootInside && traits.hasSetUserId,
          }),
      }),
    );
  }

  async restored(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
    how: Unhurried = {},
  ): Promise<GvisorSandbox> {
    const parsed = ImageRequirements.safeParse(snapshot.requirements);
    if (!parsed.success) throw new SandboxerError("image_damaged", "The image does not list its requirements.");
    const rootFilesystem = await this.images.resolve(parsed.data.root_filesystem.image, options);
    return orRelease(rootFilesystem, () =>
      this.#restoredOn(rootFilesystem, parsed.data, request, snapshot, options, how),
    );
  }

  async #restoredOn(
    rootFilesystem: RootFilesystem,
    wanted: ImageRequirements,
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options: CallOptions,
    how: Unhurried,
  ): Promise<GvisorSandbox> {
    const { cacheDirectory, engines } = this.#options;
    const { cpuFeatures } = this.#machine;
    const other = engines === undefined || isMadeBy(wanted, this.#engine) ? undefined : engines;
    // Everything else is compared first: another engine may have to be fetched.
    const { version, platform } = other === undefined ? this.#engine : asWanted(wanted);
    checkRequirements(wanted, { engineVersion: version, platform, cpuFeatures }, rootFilesystem.identity);
    this.check(request);
    if (wanted.network === "sandbox" && this.#network === undefined) throw needsNamespace();
    const engine = (await other?.find(asWanted(wanted), options)) ?? this.#engine;
    const paths = memberPaths(snapshot, [...ENGINE_MEMBERS, CONFIG_MEMBER, AGENT_MEMBER]);
    const agent = await placeSavedAgent(paths[AGENT_MEMBER]!, wanted.agent_sha256, cacheDirectory);
    const saved = parseSavedSpec(await readFile(paths[CONFIG_MEMBER]!, "utf8"));
    const hostname = hostnameOf(request.sandboxId);
    // Its network stack is part of the image. Where it cannot be connected, the proxy serves it.
    const connected = wanted.network === "sandbox" && this.ownsNetwork(request.spec.network);
    const image = { generation: wanted.generation + 1, network: wanted.network };
    return this.#launch(request, { engine, rootFilesystem, agent, image }, options, {
      ...how,
      connected,
      spec: (cgroupsPath) =>
        relocateSpec(saved, { rootFilesystem, agentDirectory: agent.directory, hostname, cgroupsPath }),
      imageDirectory: dirname(paths[ENGINE_MEMBERS[0]!]!),
    });
  }

  /** A fresh one, from wherever, with the files of a snapshot. */
  async withFiles(snapshot: SnapshotPayload, fresh: () => Promise<GvisorSandbox>): Promise<GvisorSandbox> {
    const paths = memberPaths(snapshot, [FILES_MEMBER]);
    const sandbox = await fresh();
    try {
      await loadFilesystem(sandbox.rawFiles, paths[FILES_MEMBER]!);
      return sandbox;
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }

  /** For the pool. */
  async freshAhead(request: AcquireRequest, signal: AbortSignal, hurry: AbortSignal): Promise<GvisorSandbox> {
    return refuseHook(await this.fresh(request, { signal }, { hurry }));
  }

  /** With a saved state, for the pool. */
  async stateAhead(
    request: AcquireRequest,
    state: PreparedState,
    signal: AbortSignal,
    hurry: AbortSignal,
  ): Promise<GvisorSandbox> {
    const folder = await mkdtemp(join(this.#options.runDirectory.workDirectory, "ahead-"));
    try {
      const snapshot = await state.load(folder, { signal });
      checkSize(snapshot);
      if (snapshot.kind === "gvisor-checkpoint") {
        return await this.restored(request, snapshot, { signal }, { hurry, held: true });
      }
      const fresh = (): Promise<GvisorSandbox> => this.fresh(onSavedImage(request, snapshot), { signal }, { hurry });
      return await refuseHook(await this.withFiles(snapshot, fresh));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#pipes.close(), this.#pages.close(), this.#network?.close()]);
  }

  get #engine(): Engine {
    return { ...this.#options.engine, platform: this.#options.platform };
  }

  /** Undefined: this engine is driven by commands. */
  #messagesFor({ version, control }: Engine): Messages | undefined {
    const dialect = control === "messages" ? dialectOf(version) : undefined;
    const { onlyMessages: only = false } = this.#options;
    return dialect && { dialect, sender: this.#machine.agent.path, pages: this.#pages, only };
  }

  async #traitsOf({ path }: Engine): Promise<EngineTraits> {
    const traits = this.#traits.get(path) ?? readTraits(path);
    this.#traits.set(path, traits);
    return traits;
  }

  async #launch(
    request: AcquireRequest,
    { engine, rootFilesystem, agent, image }: Parts,
    options: CallOptions,
    how: Pick<Launch, "spec" | "imageDirectory" | "hurry" | "held" | "connected">,
  ): Promise<GvisorSandbox> {
    const { runDirectory, heartbeatMs, dozeAfterMs = 0, allMemoryBytes } = this.#options;
    const { searchPath = USUAL_FOLDERS } = this.#options;
    const { agent: own, cgroups, seals } = this.#machine;
    const { rootInside } = this;
    const pad = {
      engine,
      traits: await this.#traitsOf(engine),
      stateDirectory: await this.#stateDirectory(engine),
      searchPath,
      runDirectory,
      cgroups,
      heartbeatMs,
      dozeAfterMs,
      pipes: this.#pipes,
      messages: this.#messagesFor(engine),
      network: this.#network,
      rootInside,
      // This server's own, never one that came with an image.
      sealer: seals ? own.path : undefined,
    };
    const requirements: ImageRequirements = {
      engine: { version: engine.version, sha256: engine.sha256 },
      platform: engine.platform,
      overlay: OVERLAY,
      architecture: arch(),
      cpu_features: [...this.#machine.cpuFeatures],
      root_filesystem: { image: rootFilesystem.image, ...rootFilesystem.identity },
      agent_sha256: agent.sha256,
      ...image,
    };
    const plan: Launch = {
      request,
      agent,
      rootPath: rootFilesystem.path,
      defaults: rootFilesystem.defaults,
      limits: { ...cgroupLimits(this.#resources(request)), allMemoryBytes },
      diskLimitBytes: this.#resources(request).diskBytes,
      requirements,
      onEnded: (sandbox, cleanUp) => {
        void cleanUp.catch(() => {}).finally(() => rootFilesystem.release?.());
        this.#onEnded(sandbox, cleanUp);
      },
      ...how,
    };
    return launch(pad, plan, options);
  }

  /** Engines keep their records apart: they may differ in form. */
  async #stateDirectory({ path, sha256 }: Engine): Promise<string> {
    const { stateDirectory } = this.#options.runDirectory;
    if (path === this.#options.engine.path) return stateDirectory;
    const own = join(stateDirectory, sha256.slice(0, 8));
    await mkdir(own, { recursive: true, mode: 0o700 });
    return own;
  }

  #resources(request: AcquireRequest): CompleteResources {
    return { ...this.#options.defaultResources, ...request.spec.resources };
  }
}

function asWanted({ engine, platform }: ImageRequirements): Omit<Engine, "path"> {
  return { version: engine.version, sha256: engine.sha256, platform };
}

/** A sandbox that runs releases it at its end. */
async function orRelease(
  rootFilesystem: RootFilesystem,
  work: (rootFilesystem: RootFilesystem) => Promise<GvisorSandbox>,
): Promise<GvisorSandbox> {
  try {
    return await work(rootFilesystem);
  } catch (error) {
    rootFilesystem.release?.();
    throw error;
  }
}

const SavedFiles = z.looseObject({ root_filesystem: z.looseObject({ image: z.string() }) });

/** The request with the image that a snapshot's files belong to: by now its tag may mean another one. */
export function onSavedImage(request: AcquireRequest, { requirements }: SnapshotPayload): AcquireRequest {
  const saved = SavedFiles.safeParse(requirements);
  const image = saved.success ? saved.data.root_filesystem.image : "";
  return /@sha256:[0-9a-f]{64}$/.test(image) ? { ...request, spec: { ...request.spec, image } } : request;
}

/** A network stack without even a loopback interface is of no use to the programs in an image. */
function needsNamespace(): SandboxerError {
  return new SandboxerError(
    "image_incompatible",
    "The image cannot run on this server: it was saved with a network of its own, and ip (iproute2) is not installed.",
    { hint: "apt-get install iproute2" },
  );
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

/**
 * Ends a pooled fresh sandbox whose files have a program to run after a restore: it would run when the sandbox is
 * handed out, while a newly started one would not run it.
 */
async function refuseHook(sandbox: GvisorSandbox): Promise<GvisorSandbox> {
  const hook = `${await sandbox.workspaceFolder()}/${RESTORED_HOOK}`;
  const found = await sandbox.rootFiles.stat(hook).then(
    () => true,
    () => false,
  );
  if (!found) return sandbox;
  await sandbox.destroy();
  throw new SandboxerError("not_supported", `The image has ${hook}, so the warm pool is off.`);
}
