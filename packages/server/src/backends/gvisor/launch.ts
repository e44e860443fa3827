import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { AgentClient } from "../agent/agent-client.ts";
import { environmentOf } from "./environment.ts";
import { prepareUserSpace } from "../agent/prepare-user-space.ts";
import { DEFAULT_ENVIRONMENT } from "../agent/user-space.ts";
import type { AcquireRequest } from "../backend.ts";
import type { PlacedAgent } from "./agent-placement.ts";
import { SandboxCgroup, type CgroupLimits, type CgroupVersion } from "./cgroups.ts";
import { EngineControl, pagesBytesIn, type Messages } from "./control/engine-control.ts";
import type { Engine, EngineTraits } from "./engine.ts";
import { GvisorSandbox } from "./gvisor-sandbox.ts";
import type { ImageRequirements } from "./image-requirements.ts";
import { writeResolverFile } from "./network/resolver-file.ts";
import type { ServerNetwork } from "./network/server-network.ts";
import { withNetworkNamespace } from "./oci-spec.ts";
import type { RootFilesystemDefaults } from "./root-filesystem/root-filesystem.ts";
import type { RunDirectory } from "./run-directory.ts";
import { firstReason, Runsc, type AttachedRunsc } from "./runsc.ts";
import { hostnameOf } from "./sandbox-hostname.ts";
import { endSandboxProcesses } from "./sandbox-process-tree.ts";
import type { OciSpec } from "./saved-spec.ts";
import type { PipeSupply } from "./stdio-pipes.ts";

const START_TIMEOUT_MS = 60_000;

export interface LaunchPad {
  readonly engine: Engine;
  readonly traits: EngineTraits;
  /** The folder of this engine's records. */
  readonly stateDirectory: string;
  readonly searchPath: string;
  readonly runDirectory: RunDirectory;
  readonly cgroups: CgroupVersion;
  readonly pipes: PipeSupply;
  /** Absent: the engine is driven by commands. */
  readonly messages: Messages | undefined;
  /** Absent if sandboxes have no network. */
  readonly network: ServerNetwork | undefined;
  readonly heartbeatMs: number;
  readonly dozeAfterMs: number;
  /** Whether programs may run as root. */
  readonly rootInside: boolean;
  /** See {@link RunscOptions.sealed}; absent: this machine cannot. */
  readonly sealer: string | undefined;
}

export interface Launch {
  readonly request: AcquireRequest;
  readonly agent: PlacedAgent;
  readonly rootPath: string;
  /** The image's defaults for programs. */
  readonly defaults: RootFilesystemDefaults | undefined;
  readonly limits: CgroupLimits;
  readonly diskLimitBytes: number;
  /** Whether it has a network of its own with a way out. Otherwise it has loopback only. */
  readonly connected: boolean;
  readonly requirements: ImageRequirements;
  /** The configuration with the chosen cgroup. */
  readonly spec: (cgroupsPath: string | undefined) => OciSpec;
  /** The folder of the image to restore; absent: a fresh start. */
  readonly imageDirectory?: string;
  /** With an image: it stays frozen, without contact to its agent; `become` does that. Absent: it runs. */
  readonly held?: boolean;
  /** Low priority until this aborts: others that need the CPUs come first. Absent: a caller waits. */
  readonly hurry?: AbortSignal;
  readonly onEnded: (sandbox: GvisorSandbox, cleanUp: Promise<void>) => void;
}

/**
 * Starts runsc with the agent in it, and returns the sandbox once its agent has answered. On failure nothing is left.
 */
export async function launch(pad: LaunchPad, plan: Launch, options: CallOptions): Promise<GvisorSandbox> {
  // Ids have one length: runsc accepts a prefix of an id as the id.
  const containerId = `sbx-${randomBytes(16).toString("hex")}`;
  const { runDirectory, cgroups } = pad;
  const directory = runDirectory.sandboxDirectory(containerId);
  const cgroup =
    cgroups === "none" ? undefined : new SandboxCgroup(cgroups, `${runDirectory.cgroupPath}/${containerId}`);
  const hasStack = plan.requirements.network !== "none";
  const policy = plan.connected ? plan.request.spec.network : undefined;
  const network = hasStack ? pad.network?.sandboxNetwork(containerId, policy) : undefined;
  const spec = plan.spec(cgroup?.path);
  const runsc = new Runsc({
    path: pad.engine.path,
    searchPath: pad.searchPath,
    platform: pad.engine.platform,
    stateDirectory: pad.stateDirectory,
    filestoreDirectory: runDirectory.filestoreDirectory,
    ...(pad.traits.limitsDisk ? { diskLimitBytes: plan.diskLimitBytes } : {}),
    network: plan.requirements.network,
    useCgroups: cgroup !== undefined,
    allowsSetUserId: !spec.process.noNewPrivileges,
    sealed: pad.sealer === undefined ? undefined : { by: pad.sealer, folders: boundFolders(spec) },
    attachedCgroups: runDirectory.attachedCgroups,
  });
  const { stateDirectory, messages } = pad;
  const pagesBytes = plan.imageDirectory === undefined ? 0 : await pagesBytesIn(plan.imageDirectory);
  const control = new EngineControl({ runsc, containerId, stateDirectory, messages, pagesBytes });
  options.signal?.throwIfAborted();
  await mkdir(directory, { mode: 0o700 });
  try {
    const command = plan.imageDirectory === undefined ? ["run"] : restoreCommand(pad, plan.imageDirectory, plan.held);
    // Images keep the configuration without this path, which differs at a restore.
    const config = network === undefined ? spec : withNetworkNamespace(spec, network.path);
    await Promise.all([
      writeFile(join(directory, "config.json"), JSON.stringify(config)),
      cgroup?.create(plan.limits),
      network?.create(),
    ]);
    const asUsual = await standBack(cgroup, plan.hurry);
    const pipes = await pad.pipes.take();
    const stdio = [pipes.childInput, pipes.childOutput, "pipe" as const];
    const attached = runsc.attached([...command, `--bundle=${directory}`, containerId], stdio);
    pipes.closeChildEnds();
    const agent = new AgentClient(pipes.input, pipes.output, {
      users: {
        user: plan.request.spec.user ?? imageUser(plan.defaults, pad.rootInside),
        workingFolder: plan.defaults?.workingFolder,
        rootInside: pad.rootInside,
        gainsRights: pad.rootInside && !spec.process.noNewPrivileges,
      },
      baseEnv: DEFAULT_ENVIRONMENT,
      env: environmentOf(plan.request.spec, plan.defaults),
      heartbeatMs: pad.heartbeatMs,
      onFailure: () => void endSandboxProcesses(attached),
      onEnd: () => void sandbox.expectEnd(),
      beforeFrame: () => sandbox.wake(),
      chunksLast: false,
    });
    const sandbox: GvisorSandbox = new GvisorSandbox({
      sandboxId: plan.request.sandboxId,
      containerId,
      directory,
      stateDirectory,
      filestoreDirectory: runDirectory.filestoreDirectory,
      runsc,
      control,
      attached,
      agent,
      spec,
      agentPath: plan.agent.path,
      rootPath: plan.rootPath,
      cgroup,
      network,
      diskLimitBytes: plan.diskLimitBytes,
      dozeAfterMs: pad.dozeAfterMs,
      requirements: plan.requirements,
      defaults: plan.defaults,
      rootInside: pad.rootInside,
      onEnded: (cleanUp) => plan.onEnded(sandbox, cleanUp),
    });
    await (plan.held === true ? loadAndHold(sandbox, options) : firstWords(sandbox, agent, attached, plan, options));
    // Low priority only makes it slower.
    await asUsual().catch(() => {});
    pad.pipes.prepare();
    return sandbox;
  } catch (error) {
    await Promise.all([rm(directory, { recursive: true, force: true }), cgroup?.remove(), network?.remove()]);
    throw error;
  }
}

/** An image that is made for root runs as the usual user where root is not allowed. */
function imageUser(defaults: RootFilesystemDefaults | undefined, rootInside: boolean): string | undefined {
  const isRoot = /^(root|0+)(:|$)/.test(defaults?.user ?? "");
  return isRoot && !rootInside ? undefined : defaults?.user;
}

/** The folders of the host that the sandbox sees. */
function boundFolders({ mounts }: OciSpec): string[] {
  return mounts.flatMap(({ type, source }) => (type === "bind" ? [source] : []));
}

/** A frozen one has time to load completely, and is still only then. */
function restoreCommand(pad: LaunchPad, imageDirectory: string, held: boolean | undefined): readonly string[] {
  const early = pad.traits.loadsInBackground && held !== true ? ["--background"] : [];
  return ["restore", ...early, `--image-path=${imageDirectory}`];
}

/** Lowers the priority until a caller is in a hurry, or the returned function is called. */
async function standBack(
  cgroup: SandboxCgroup | undefined,
  hurry: AbortSignal | undefined,
): Promise<() => Promise<void>> {
  if (cgroup === undefined || hurry === undefined || hurry.aborted) return async () => {};
  await cgroup.setPrecedence("after others");
  let usual: Promise<void> | undefined;
  const asUsual = (): Promise<void> => (usual ??= cgroup.setPrecedence("usual"));
  // A process that has ended meanwhile needs none.
  hurry.addEventListener("abort", () => void asUsual().catch(() => {}), { once: true });
  return asUsual;
}

async function loadAndHold(sandbox: GvisorSandbox, options: CallOptions): Promise<void> {
  try {
    await sandbox.untilLoaded({ ...options, timeoutMs: START_TIMEOUT_MS });
    await sandbox.freeze();
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

async function firstWords(
  sandbox: GvisorSandbox,
  agent: AgentClient,
  attached: AttachedRunsc,
  plan: Launch,
  options: CallOptions,
): Promise<void> {
  const waiting = { timeoutMs: START_TIMEOUT_MS, signal: options.signal };
  const fresh = plan.imageDirectory === undefined;
  try {
    if (fresh) {
      await agent.start(waiting);
      await prepareUserSpace(agent, plan.requirements.root_filesystem.kind === "host");
    } else await agent.restored(plan.requirements.generation, hostnameOf(plan.request.sandboxId), waiting);
    if (plan.connected) await writeResolverFile(agent.rootFiles);
    await sandbox.watch();
  } catch (error) {
    await sandbox.destroy();
    if (options.signal?.aborted) throw error;
    const words = attached.lastWords();
    if (words.trim() === "") throw error;
    const [code, what] = fresh ? (["backend_unavailable", "start"] as const) : (["image_damaged", "restore"] as const);
    throw new SandboxerError(code, `gVisor could not ${what} the sandbox: ${firstReason(words)}`, { cause: error });
  }
}
