import { asSandboxerError, type SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import type { AcquireRequest } from "../backend.ts";
import type { DockerSandbox } from "./docker-sandbox.ts";
import type { Container } from "./engine/answers.ts";
import { statusOf } from "./engine/engine-errors.ts";
import { Label, labelsToFind, newContainerName, stoppedForMs } from "./labels.ts";
import { joinContainer, startContainer, type LaunchPad } from "./launch.ts";

/** A container that was created this recently and never started is still being created. */
const BEING_MADE_MS = 10 * 60_000;

/**
 * Finds the container of a request and makes it run here. Containers with its key that no longer match are removed; so
 * are those that do not answer, and all except the newest.
 */
export async function resumeContainer(
  pad: LaunchPad,
  request: AcquireRequest,
  live: (containerId: string) => DockerSandbox | undefined,
  options: CallOptions,
): Promise<DockerSandbox | undefined> {
  const { engine } = pad;
  const listed = await engine.listContainers(labelsToFind(request));
  const looked = await Promise.all(listed.map(({ Id }) => engine.container(Id)));
  const found = looked.filter((container) => container !== undefined);
  const newestFirst = found.toSorted((left, right) => (left.Created < right.Created ? 1 : -1));
  let resumed: DockerSandbox | undefined;
  for (const container of newestFirst) {
    options.signal?.throwIfAborted();
    const fits = fitOf(container, request);
    if (fits === "being made") continue;
    if (fits && resumed === undefined)
      resumed = live(container.Id) ?? (await tryContainer(pad, container, request, options));
    if (resumed?.containerId !== container.Id) await engine.removeContainer(container.Id);
  }
  return resumed;
}

function fitOf(container: Container, { identity }: AcquireRequest): boolean | "being made" {
  const stoppedMs = stoppedForMs(container, Date.now());
  if (container.State.Status === "created" && stoppedMs !== undefined && stoppedMs < BEING_MADE_MS) return "being made";
  if (container.State.Status === "removing") return false;
  if (identity === undefined) return true;
  if (container.Config.Labels[Label.specHash] !== identity.specHash) return false;
  return stoppedMs === undefined || stoppedMs <= identity.idleTtlMs;
}

/** Undefined if it does not answer. */
async function tryContainer(
  pad: LaunchPad,
  container: Container,
  request: AcquireRequest,
  options: CallOptions,
): Promise<DockerSandbox | undefined> {
  const { engine } = pad;
  const { Status } = container.State;
  try {
    // From here on it belongs to this process: recovery by others ignores it.
    await engine.rename(container.Id, newContainerName(pad.instanceId));
    if (Status === "paused") await engine.unpause(container.Id);
    if (Status === "running" || Status === "paused") {
      const joined = await joinContainer(pad, container, request, options).catch(() => undefined);
      if (joined !== undefined) return joined;
      options.signal?.throwIfAborted();
      // Its files are worth a second try: the previous server may have blocked its streams.
      await engine.stop(container.Id);
    }
    return await startContainer(pad, container, request, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    if (!isItsFault(asSandboxerError(error))) throw error;
    return undefined;
  }
}

/**
 * The agent does not answer, or the engine cannot start the container. An unavailable or full engine does not count.
 */
function isItsFault(error: SandboxerError): boolean {
  if (error.code === "no_space") return false;
  return error.code === "timeout" || error.code === "sandbox_failed" || statusOf(error) !== undefined;
}
