import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asSandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import { AGENT_PATH } from "../agent/agent-place.ts";
import type { AcquireRequest } from "../backend.ts";
import type { ContainerMaker } from "./container-maker.ts";
import type { DockerSandbox } from "./docker-sandbox.ts";
import type { EngineInfo } from "./engine/answers.ts";
import { Label } from "./labels.ts";
import type { LaunchPad } from "./launch.ts";

const LIMIT_MS = 60_000;
const REPOSITORY = "sandboxer-trial";
const PROGRAM = "trial";
const OFF = `the engine's experimental checkpoints are off (turn them on with "experimental": true in its daemon.json)`;

/** Why memory cannot be saved, as the end of a sentence; undefined if it can. */
export type WhyNoMemory = string | undefined;

/**
 * By everything that may change the result. An engine that is restarted with other settings is tested again by the next
 * process.
 */
const known = new Map<string, Promise<WhyNoMemory>>();

/**
 * Whether the engine's checkpoints work here with this runtime: tested once, with a tiny container that takes the same
 * steps as a sandbox. Never throws.
 */
export function whyNoMemory(
  maker: ContainerMaker,
  pad: LaunchPad,
  info: EngineInfo,
  runtime: string | undefined,
): Promise<WhyNoMemory> {
  if (!info.ExperimentalBuild) return Promise.resolve(OFF);
  const { address } = pad.engine;
  const key = JSON.stringify([address, info.ServerVersion, info.KernelVersion, runtime ?? info.DefaultRuntime]);
  const trial = known.get(key) ?? tryOut(maker, pad).catch(reasonOf);
  known.set(key, trial);
  return trial;
}

async function tryOut(maker: ContainerMaker, pad: LaunchPad): Promise<WhyNoMemory> {
  const signal = AbortSignal.timeout(LIMIT_MS);
  const made: DockerSandbox[] = [];
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-trial-"));
  const image = `${REPOSITORY}:${randomUUID()}`;
  try {
    return await unlessAborted(saveAndLoad(maker, pad, image, folder, made, { signal }), signal);
  } catch (error) {
    return signal.aborted ? `a trial took longer than ${LIMIT_MS / 1000} s` : reasonOf(error);
  } finally {
    await Promise.allSettled(made.map((sandbox) => sandbox.destroy()));
    await Promise.allSettled([pad.engine.removeImage(image), rm(folder, { recursive: true, force: true })]);
  }
}

/** The program must be running in the copy, which is started with only the checkpoint. */
async function saveAndLoad(
  maker: ContainerMaker,
  pad: LaunchPad,
  image: string,
  folder: string,
  made: DockerSandbox[],
  options: CallOptions,
): Promise<WhyNoMemory> {
  const { engine, agentArchive, owner, instanceId } = pad;
  const labels = Object.entries({ [Label.owner]: owner, [Label.snapshot]: instanceId });
  const changes = `LABEL ${labels.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(" ")}`;
  const [repository = "", tag = ""] = image.split(":");
  await engine.importImage(repository, tag, agentArchive, { ...options, changes });
  const sandbox = await maker.make(newRequest(owner), image, options);
  made.push(sandbox);
  // The image has no other program.
  await sandbox.exec({ argv: [AGENT_PATH], key: PROGRAM }, options);
  const snapshot = await sandbox.saveAll(folder, { ...options, leaveRunning: true });
  await sandbox.ping(options);
  const copy = await maker.load(newRequest(owner), snapshot, options);
  made.push(copy);
  const program = (await copy.processes()).find(({ key }) => key === PROGRAM);
  return program !== undefined && program.exit === undefined
    ? undefined
    : "in a trial, the processes were not restored";
}

/** Leftovers of a process that died half-way end at once. */
function newRequest(owner: string): AcquireRequest {
  const identity = { key: `trial-${randomUUID()}`, specHash: "", owner, idleTtlMs: 0 };
  return { sandboxId: randomUUID(), spec: { env: {}, resources: {}, network: "none" }, identity };
}

/** Without the path of a log that no longer exists. */
function reasonOf(error: unknown): string {
  return asSandboxerError(error).message.replace(/ path= \S+criu-dump\.log\b.*$/, "");
}
