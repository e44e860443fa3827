import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Resources, SandboxBackend } from "../backends/backend.ts";
import type { FateOf, OpenedBackend } from "../backends/instance-folder.ts";
import type { NetworkSupport } from "../backends/gvisor/network/network-support.ts";
import type { ImageLibrary } from "../images/image-library.ts";
import type { NetworkMode } from "../backends/network-mode.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import { EngineLibrary, prepareGvisor, type ReportStep } from "../setup/index.ts";
import { systemClock } from "../support/clock.ts";
import type { ServerConfig } from "./config.ts";
import { openImages } from "./images.ts";
import { resourceLimits, sandboxesMemory } from "./resource-limits.ts";

const MIB = 1024 * 1024;

/** The defaults of a sandbox. */
const DEFAULT_RESOURCES = {
  memoryBytes: 2048 * MIB,
  processes: 512,
  diskBytes: 8192 * MIB,
  fileBytes: 4096 * MIB,
};

/** The agents' dead man's switch: as long as the server itself may run without a renewal. */
const HEARTBEAT_TTLS = 0.75;

/** A backend whose requirements were found; opened when the server knows its instance id. */
export interface PreparedBackend {
  readonly name: string;
  /** One line for people. */
  readonly engine: string;
  /** `sandboxes`: how many places of the server are taken. */
  open(instanceId: string, sandboxes?: () => number): Promise<OpenedBackend>;
  /** Container images that it can use; absent: its provider has its own. */
  readonly images?: ImageLibrary;
  /** Ends and removes leftovers of dead servers on this machine; returns their instance ids. */
  recover(fateOf: FateOf): Promise<readonly string[]>;
}

export interface DockerDefaults {
  readonly resources: Resources;
  readonly heartbeatMs: number;
}

/** Called when background work failed. */
type OnProblem = (message: string, error: unknown) => void;

export async function prepareBackend(
  config: ServerConfig,
  secrets: SecretResolver,
  report: ReportStep,
  onProblem: OnProblem = () => {},
): Promise<PreparedBackend> {
  switch (config.backend) {
    case "gvisor":
      return prepareGvisorBackend(config, await openImages(config, secrets, onProblem), report, onProblem);
    case "docker": {
      const { prepareDockerBackend } = await import("./docker.ts");
      return prepareDockerBackend(config, dockerDefaults(config), report);
    }
    case "daytona": {
      const { prepareDaytonaBackend } = await import("./daytona.ts");
      return prepareDaytonaBackend(config, secrets, report);
    }
    case "fake":
      return fakeBackend(config, await openImages(config, secrets, onProblem));
    default: {
      const { prepareOtherBackend } = await import("./providers.ts");
      return prepareOtherBackend(config, secrets);
    }
  }
}

function heartbeatMs({ store, leaseTtlMs }: ServerConfig): number {
  return store === undefined ? 0 : Math.round(leaseTtlMs * HEARTBEAT_TTLS);
}

/** Never more than a sandbox may request. */
function defaultResources(config: ServerConfig): typeof DEFAULT_RESOURCES {
  const { memoryBytes, processes, diskBytes, fileBytes } = DEFAULT_RESOURCES;
  const { here } = resourceLimits(config);
  return {
    memoryBytes: Math.min(memoryBytes, here.memoryBytes ?? Infinity),
    processes: Math.min(processes, here.processes ?? Infinity),
    diskBytes: Math.min(diskBytes, here.diskBytes ?? Infinity),
    fileBytes,
  };
}

/** Without a disk limit, which few engines support. */
export function dockerDefaults(config: ServerConfig): DockerDefaults {
  const { diskBytes: _, ...resources } = defaultResources(config);
  return { resources, heartbeatMs: heartbeatMs(config) };
}

async function prepareGvisorBackend(
  config: ServerConfig,
  images: ImageLibrary,
  report: ReportStep,
  onProblem: OnProblem,
): Promise<PreparedBackend> {
  const { cacheDirectory, searchPath, runscPath, platform: wanted, dataDirectory } = config;
  const context = { cacheDirectory, searchPath, runscPath, platform: wanted, report };
  const { engine, agentPath, agentSha256, platform, control } = await prepareGvisor(context);
  const agent = { path: agentPath, sha256: agentSha256 };
  const engines = new EngineLibrary(context, agent, { ...engine, platform, control }, { fetch: config.fetchEngines });
  const { GvisorBackend } = await import("../backends/gvisor/gvisor-backend.ts");
  if (config.rootInside.gvisor) await warnOfNoRoot(agentPath, report);
  const { RunDirectory, recoverRunDirectories } = await import("../backends/gvisor/run-directory.ts");
  const network = await networkSupport(config, engine.version, report);
  const runParent = join(dataDirectory, "run");
  return {
    name: "gvisor",
    images,
    engine: `gVisor (runsc ${engine.version}, ${platform}, driven by ${control}), ${engine.path}`,
    recover: () => recoverRunDirectories(runParent),
    open: async (instanceId, sandboxes) => {
      const runDirectory = await RunDirectory.open(runParent, instanceId);
      const backend = await GvisorBackend.open({
        engine: { ...engine, control },
        searchPath,
        platform,
        engines,
        agentPath,
        runDirectory,
        cacheDirectory,
        defaultImage: config.image,
        imageDirectories: [join(dataDirectory, "images")],
        images,
        defaultResources: defaultResources(config),
        allMemoryBytes: sandboxesMemory(config),
        network,
        rootInside: config.rootInside.gvisor,
        networkMode: networkModeOf(config),
        networkAllowed: config.networkAllow,
        // A server that hangs cannot freeze anything; the agents then do, before others may take over.
        heartbeatMs: heartbeatMs(config),
        dozeAfterMs: config.dozeAfterMs,
        warm: {
          max: config.warmPoolMax,
          maxSandboxes: config.maxSandboxes,
          sandboxes,
          clock: systemClock,
          onProblem,
        },
      });
      void engines.open(engine).catch((error: unknown) => onProblem("the engines could not be listed", error));
      return {
        backend,
        workDirectory: runDirectory.workDirectory,
        noteLaterId: (laterId) => runDirectory.noteLaterId(laterId),
        close: async () => {
          await engines.close();
          await backend.close();
          await runDirectory.close();
        },
      };
    },
  };
}

async function warnOfNoRoot(agentPath: string, report: ReportStep): Promise<void> {
  const { canSeal, NO_SEAL } = await import("../backends/gvisor/seal.ts");
  if (!(await canSeal(agentPath))) report({ name: "root", state: "failed", message: NO_SEAL, elapsedMs: 0 });
}

export function networkModeOf({ networkMode, allowNetwork }: ServerConfig): NetworkMode {
  return networkMode ?? (allowNetwork ? "auto" : "proxy");
}

/** Whether sandboxes can have networks of their own. Logs at the start what requests would otherwise find out first. */
async function networkSupport(
  config: ServerConfig,
  engineVersion: string,
  report: ReportStep,
): Promise<NetworkSupport | undefined> {
  const mode = networkModeOf(config);
  if (mode === "off" || mode === "proxy") return undefined;
  const { probeNetwork } = await import("../backends/gvisor/network/network-support.ts");
  const startMs = performance.now();
  const support = await probeNetwork(engineVersion, config.searchPath);
  const instead = mode === "auto" ? "They use the proxy." : "";
  const [state, message] = support.ok
    ? (["done", "Sandboxes with a network get one of their own"] as const)
    : ([
        "failed",
        `Sandboxes cannot have networks of their own: ${support.reason}. ${instead || support.remedy}`,
      ] as const);
  report({ name: "network", state, message, elapsedMs: Math.round(performance.now() - startMs) });
  return support;
}

async function fakeBackend(config: ServerConfig, images: ImageLibrary): Promise<PreparedBackend> {
  const { FakeBackend } = await import("../backends/fake/index.ts");
  return {
    name: "fake",
    images,
    engine: "fake: for tests only; nothing is isolated and no real program runs",
    recover: async () => [],
    open: (instanceId) => openIn(join(config.dataDirectory, "fake", instanceId), new FakeBackend()),
  };
}

/** A backend that has nothing on this machine except the folder of saves on their way to the store. */
export async function openIn(workDirectory: string, backend: SandboxBackend): Promise<OpenedBackend> {
  await mkdir(workDirectory, { recursive: true });
  const close = async (): Promise<void> => {
    await backend.close();
    await rm(workDirectory, { recursive: true, force: true });
  };
  return { backend, workDirectory, noteLaterId: async () => {}, close };
}
