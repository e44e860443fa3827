import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { FateOf, OpenedBackend } from "../backends/instance-folder.ts";
import type { BackendProvider } from "../backends/lazy-backend.ts";
import { DOCKER } from "../backends/traits.ts";
import { prepareAgent, withSetupLock, type ReportStep } from "../setup/index.ts";
import { networkModeOf, type DockerDefaults, type PreparedBackend } from "./backends.ts";
import type { ServerConfig } from "./config.ts";
import { installationId } from "./installation.ts";

/** Docker as the default backend. */
export async function prepareDockerBackend(
  config: ServerConfig,
  defaults: DockerDefaults,
  report: ReportStep,
): Promise<PreparedBackend> {
  const agentPath = await findAgentPath(config, report);
  return {
    name: DOCKER.name,
    engine: `Docker at ${config.dockerHost}`,
    recover: (fateOf) => recover(config, fateOf),
    open: (instanceId) => open(config, defaults, agentPath, instanceId),
  };
}

/** Docker as an additional backend: its requirements are checked when the first sandbox needs it. */
export function dockerProvider(config: ServerConfig, defaults: DockerDefaults, fateOf: FateOf): BackendProvider {
  return {
    ...DOCKER,
    capabilities: {
      ...DOCKER.capabilities,
      network: networkModeOf(config) !== "off",
      root: config.rootInside.docker,
    },
    open: async () => {
      await recover(config, fateOf);
      const agentPath = await findAgentPath(config, () => {});
      return (await open(config, defaults, agentPath, randomUUID())).backend;
    },
  };
}

async function findAgentPath({ cacheDirectory, searchPath }: ServerConfig, report: ReportStep): Promise<string> {
  const context = { cacheDirectory, searchPath, platform: "auto", report } as const;
  return (await withSetupLock(context, () => prepareAgent(context))).path;
}

async function recover(config: ServerConfig, fateOf: FateOf): Promise<string[]> {
  const { recoverDocker } = await import("../backends/docker/index.ts");
  return recoverDocker(await placeOf(config), fateOf);
}

async function open(
  config: ServerConfig,
  { resources, heartbeatMs }: DockerDefaults,
  agentPath: string,
  instanceId: string,
): Promise<OpenedBackend> {
  const { openDockerBackend } = await import("../backends/docker/index.ts");
  const mode = networkModeOf(config);
  return openDockerBackend({
    ...(await placeOf(config)),
    instanceId,
    agentPath,
    defaultImage: config.dockerImage,
    imageDirectories: [join(config.dataDirectory, "images")],
    defaultResources: resources,
    heartbeatMs,
    runtime: config.dockerRuntime,
    networkMode: mode,
    network: mode === "namespace" || mode === "auto" ? config.dockerNetwork : undefined,
    allowedMounts: config.dockerMounts,
    rootInside: config.rootInside.docker,
  });
}

async function placeOf({ dockerHost, dataDirectory }: ServerConfig) {
  const owner = await installationId(dataDirectory);
  return { host: dockerHost, directory: join(dataDirectory, "docker"), owner };
}
