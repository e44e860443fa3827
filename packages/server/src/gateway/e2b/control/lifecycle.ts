import type { SandboxRecord } from "@sandboxer/protocol";
import type { VerbOptions } from "../../../manager/observing/operations/tracked.ts";
import type { Sandbox } from "../../../manager/sandbox.ts";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { E2bError } from "../errors.ts";
import { RESERVED } from "../reserved-labels.ts";
import { existingRunning, settled, type Existing } from "./existing.ts";

export interface Connected {
  readonly record: SandboxRecord;
  readonly resumed: boolean;
}

export interface ConnectRequest {
  readonly seconds: number;
  /** False: it starts again with its files only. */
  readonly memory: boolean;
  /** Changes what happens at the end of its time. */
  readonly onExpiry?: "pause" | "delete" | undefined;
}

/** Makes a sandbox run for at least this long. A running one only ever gets more time. */
export async function connectSandbox(
  manager: SandboxManager,
  sandboxId: string,
  request: ConnectRequest,
  options: VerbOptions,
): Promise<Connected> {
  const found = await settled(manager, sandboxId);
  // A call about a sandbox on another live server was passed on; one that is nowhere has lost its server.
  const isLost = found.state === "running" && !manager.ports.runsHere(sandboxId);
  if (found.state === "running" && !isLost) {
    return { record: await lengthen(manager, found, request.seconds), resumed: false };
  }
  const bootsAnew = !request.memory || wasPausedWithoutMemory(found);
  // An expired sandbox cannot be resumed; its new time begins when it runs.
  if (found.record.expires_at !== null && !isLost) await manager.amend(sandboxId, undefined, { expires_at: null });
  const sandbox = await manager.resume({ sandboxId, onlyIfFree: isLost }, options);
  if (bootsAnew) await bootAnew(manager, sandbox, options);
  const record = await endAfter(manager, sandboxId, request.seconds, request.onExpiry);
  return { record, resumed: true };
}

/** Ends the sandbox after this time, from now on. */
export async function setTimeoutOf(manager: SandboxManager, sandboxId: string, seconds: number): Promise<void> {
  const { state } = await settled(manager, sandboxId);
  if (state === "paused") throw new E2bError(404, `The sandbox ${sandboxId} is paused, so it has no timeout.`);
  await endAfter(manager, sandboxId, seconds);
}

/** Gives the sandbox more time, never less. */
export async function refreshTimeout(manager: SandboxManager, sandboxId: string, seconds: number): Promise<void> {
  const found = await settled(manager, sandboxId);
  if (found.state === "paused") throw new E2bError(404, `The sandbox ${sandboxId} is paused, so it has no timeout.`);
  await lengthen(manager, found, seconds);
}

/** A paused sandbox stays until it is deleted. Without memory, its programs end, and it starts again with its files. */
export async function pauseSandbox(
  manager: SandboxManager,
  sandboxId: string,
  memory: boolean,
  options: VerbOptions,
): Promise<void> {
  const { record } = await existingRunning(manager, sandboxId);
  const sandbox = await manager.running(sandboxId);
  // Before the pause: otherwise the end of its time could delete it while nobody runs it.
  await manager.amend(sandboxId, undefined, { expires_at: null });
  try {
    if (!memory) await bootAnew(manager, sandbox, options);
    await manager.pause(sandbox, options);
  } catch (error) {
    await manager.amend(sandboxId, undefined, { expires_at: record.expires_at }).catch(() => {});
    throw error;
  }
}

async function lengthen(manager: SandboxManager, { record }: Existing, seconds: number): Promise<SandboxRecord> {
  const isLonger = record.expires_at !== null && Date.parse(record.expires_at) < Date.now() + seconds * 1000;
  return isLonger ? await endAfter(manager, record.id, seconds) : record;
}

function endAfter(
  manager: SandboxManager,
  sandboxId: string,
  seconds: number,
  on_expiry?: "pause" | "delete",
): Promise<SandboxRecord> {
  const end = seconds > 0 ? { ttl: `${seconds}s` } : { expires_at: new Date().toISOString() };
  return manager.amend(sandboxId, undefined, { ...end, on_expiry });
}

/** An explicit pause takes the end away, so a paused sandbox that has one was paused by it. */
function wasPausedWithoutMemory({ record: { labels, expires_at }, state }: Existing): boolean {
  return state === "paused" && labels[RESERVED.autoPauseMemory] === "off" && expires_at !== null;
}

/** Starts a sandbox again with its files and without its programs, under the same id. */
async function bootAnew(manager: SandboxManager, sandbox: Sandbox, options: VerbOptions): Promise<void> {
  // The server's own, as those of forks: lists do not show it, and retention removes it.
  const request = { mode: "filesystem", reason: "fork" } as const;
  const { id } = await manager.snapshots.capture(sandbox.id, undefined, request, options);
  await manager.rewind(sandbox, id, options);
  // It may be needed as the base of the new state; then it stays until retention.
  await manager.snapshots.remove(id).catch(() => {});
}
