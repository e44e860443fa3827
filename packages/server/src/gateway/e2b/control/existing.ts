import { setTimeout as delay } from "node:timers/promises";
import { isSandboxId, SandboxerError, type SandboxRecord } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import { E2bError } from "../errors.ts";
import { type E2bState, e2bStateOf } from "./view.ts";

const LOOK_MS = 50;
const PATIENCE_MS = 60_000;

export interface Existing {
  readonly record: SandboxRecord;
  readonly state: E2bState;
}

/** A sandbox as E2B's clients see it. Throws a 404 for one that does not exist any more. */
export async function existing(manager: SandboxManager, sandboxId: string): Promise<Existing> {
  if (!isSandboxId(sandboxId)) throw noSandbox(sandboxId);
  const record = await manager.find(sandboxId).catch((error: unknown) => {
    if (error instanceof SandboxerError && error.row.httpStatus === 404) return undefined;
    throw error;
  });
  const state = record === undefined ? undefined : e2bStateOf(record);
  if (record === undefined || state === undefined) throw noSandbox(sandboxId);
  return { record, state };
}

/** As {@link existing}, after a pause or resume that is in progress. */
export async function settled(manager: SandboxManager, sandboxId: string): Promise<Existing> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await existing(manager, sandboxId);
    const { state } = found.record;
    const isMoving = state === "saving" || state === "creating" || state === "restoring";
    if (!isMoving || performance.now() > endMs) return found;
    await delay(LOOK_MS);
  }
}

/** Throws a 409 for a paused sandbox. */
export async function existingRunning(manager: SandboxManager, sandboxId: string): Promise<Existing> {
  const found = await settled(manager, sandboxId);
  if (found.state === "paused") throw new E2bError(409, `The sandbox ${sandboxId} is paused. Connect to it first.`);
  return found;
}

function noSandbox(sandboxId: string): E2bError {
  return new E2bError(404, `There is no sandbox ${JSON.stringify(sandboxId.slice(0, 100))}.`);
}
