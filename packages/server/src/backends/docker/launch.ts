import type { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { AgentClient } from "../agent/agent-client.ts";
import { resync } from "../agent/resync.ts";
import { makeFolderOnce, prepareUserSpace } from "../agent/prepare-user-space.ts";
import { DEFAULT_ENVIRONMENT } from "../agent/user-space.ts";
import type { AcquireRequest } from "../backend.ts";
import { giveCheckpoint, LOADED } from "./checkpoint-files.ts";
import type { LoadableCheckpoint } from "./checkpoint-snapshot.ts";
import { DockerSandbox, type SandboxPlace } from "./docker-sandbox.ts";
import type { Container } from "./engine/answers.ts";
import type { Attachment } from "./engine/attachment.ts";
import { statusOf } from "./engine/engine-errors.ts";
import { Label, RESYNC_VARIABLE, resyncTokenOf } from "./labels.ts";
import { hostnameOf } from "./sandbox-config.ts";

/** A running agent answers within milliseconds. */
const TAKE_OVER_TIMEOUT_MS = 5_000;

export interface LaunchPad extends SandboxPlace {
  readonly agentArchive: Uint8Array;
  readonly heartbeatMs: number;
  /** Whether programs may run as root; absent: no. */
  readonly rootInside?: boolean;
  /** For the first message of a started agent. */
  readonly startTimeoutMs: number;
}

/** Starts a stopped container, with the agent of this server. */
export async function startContainer(
  pad: LaunchPad,
  container: Container,
  request: AcquireRequest,
  options: CallOptions,
): Promise<DockerSandbox> {
  const { engine, agentArchive } = pad;
  const id = container.Id;
  await engine.putArchive(id, "/", agentArchive, options);
  // Before the start, so that no output of the agent is missed.
  const attachment = await engine.attach(id, options);
  try {
    await engine.start(id, options);
    const { agent, sandbox } = openSandbox(pad, container, request, attachment, attachment.output);
    return await answering(sandbox, async () => {
      await agent.start({
        timeoutMs: pad.startTimeoutMs,
        signal: options.signal,
        resyncToken: resyncTokenOf(container),
      });
      await prepareUserSpace(agent, false);
      await makeFolderOnce(agent.rootFiles, "/tmp", 0o1777);
    });
  } catch (error) {
    attachment.close();
    throw error;
  }
}

/** Takes over a running container that another process has left. Processes inside keep running. */
export async function joinContainer(
  pad: LaunchPad,
  container: Container,
  request: AcquireRequest,
  options: CallOptions,
): Promise<DockerSandbox> {
  const token = tokenOf(container);
  const attachment = await pad.engine.attach(container.Id, options);
  try {
    const waiting = { timeoutMs: TAKE_OVER_TIMEOUT_MS, signal: options.signal };
    const output = await resync(attachment.input, attachment.output, token, waiting);
    const { agent, sandbox } = openSandbox(pad, container, request, attachment, output);
    return await answering(sandbox, async () => {
      await agent.rejoined(waiting);
      // The previous server may have died while it read files.
      await agent.thawProcesses();
    });
  } catch (error) {
    attachment.close();
    throw error;
  }
}

/**
 * Starts a container that was never started from a checkpoint of another one. Its agent is that of the checkpoint, in
 * the middle of its work for an absent host: it is taken over like a running one.
 */
export async function loadContainer(
  pad: LaunchPad,
  container: Container,
  request: AcquireRequest,
  { members, generation, madeBy }: LoadableCheckpoint,
  options: CallOptions,
): Promise<DockerSandbox> {
  const { engine } = pad;
  const id = container.Id;
  const token = tokenOf(container);
  await giveCheckpoint(pad, { id, image: container.Image }, members, options);
  const attachment = await engine.attach(id, options);
  try {
    await engine.startFromCheckpoint(id, LOADED, options).catch((error: unknown) => {
      throw notLoaded(error, madeBy);
    });
    // The engine has read it, and the container may live long.
    await engine.removeCheckpoint(id, LOADED);
    const waiting = { timeoutMs: pad.startTimeoutMs, signal: options.signal };
    const output = await resync(attachment.input, attachment.output, token, waiting);
    const { agent, sandbox } = openSandbox(pad, container, request, attachment, output);
    return await answering(sandbox, () => agent.restored(generation, hostnameOf(request), waiting));
  } catch (error) {
    attachment.close();
    throw error;
  }
}

/** Its runtime may have another version or other flags, which is unknown before. */
function notLoaded(error: unknown, madeBy: string): unknown {
  if (statusOf(error) === undefined || (error as SandboxerError).code === "no_space") return error;
  const { message, details } = error as SandboxerError;
  return new SandboxerError("image_incompatible", message, {
    cause: error,
    details,
    hint: `The snapshot was taken by ${madeBy}. Restore it with the same versions and arguments.`,
  });
}

function tokenOf(container: Container): string {
  const token = resyncTokenOf(container);
  if (token !== undefined) return token;
  throw new SandboxerError("sandbox_failed", "The container cannot be handed off.");
}

/** A container that does not start to answer belongs to nobody: its creator decides. */
async function answering(sandbox: DockerSandbox, firstWords: () => Promise<void>): Promise<DockerSandbox> {
  try {
    await firstWords();
    return sandbox;
  } catch (error) {
    sandbox.abandon();
    throw error;
  }
}

function openSandbox(
  pad: LaunchPad,
  container: Container,
  request: AcquireRequest,
  attachment: Attachment,
  output: Readable,
): { readonly agent: AgentClient; readonly sandbox: DockerSandbox } {
  const { [RESYNC_VARIABLE]: _, ...imageVariables } = variablesOf(container);
  const agent = new AgentClient(attachment.input, output, {
    users: { user: request.spec.user, rootInside: pad.rootInside ?? false },
    baseEnv: { ...DEFAULT_ENVIRONMENT, ...imageVariables },
    env: request.spec.env,
    heartbeatMs: pad.heartbeatMs,
    onFailure: (error) => void sandbox.agentFailed(error),
    onEnd: () => void sandbox.expectEnd(),
    chunksLast: true,
  });
  const sandbox: DockerSandbox = new DockerSandbox({
    ...pad,
    // A request by key does not know the id of the existing one.
    sandboxId: container.Config.Labels[Label.sandboxId] ?? request.sandboxId,
    containerId: container.Id,
    agent,
    ownNetwork: container.HostConfig.NetworkMode !== "none",
    snapshotImage: Label.snapshot in container.Config.Labels ? container.Image : undefined,
    lastWords: () => attachment.lastWords(),
  });
  return { agent, sandbox };
}

/** The image's, and the agent's own. */
function variablesOf({ Config }: Container): Record<string, string> {
  const pairs = Config.Env.map(
    (text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)] as const,
  );
  return Object.fromEntries(pairs.filter(([name]) => name !== ""));
}
