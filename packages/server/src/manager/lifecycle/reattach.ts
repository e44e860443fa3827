import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { ErrorCode, SandboxRecord } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { findSandbox } from "../observing/describe.ts";
import { listSandboxes } from "../observing/list-sandboxes.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { IN_USE } from "../ownership/yield.ts";
import { amendSandbox } from "./amend.ts";
import { destroyById } from "./destroy-by-id.ts";
import type { SandboxPlan } from "./plan.ts";
import { resumeSandbox } from "./resume.ts";

export interface Reattached {
  /** The newest sandbox with the key and the same spec that answers. */
  readonly found: LiveSandbox | undefined;
  /** If none was found: the id of the sandbox with the key whose copy the provider lost. */
  readonly lostByProvider: string | undefined;
}

/**
 * Finds the sandbox with a key and makes it run here. Sandboxes with the key that have another spec, were stopped for
 * too long, or are older than the one found, are deleted.
 */
export async function reattach(
  context: ManagerContext,
  plan: SandboxPlan,
  key: string,
  options: VerbOptions,
): Promise<Reattached> {
  const claimed = await claimedSandbox(context, plan, key);
  let found: LiveSandbox | undefined;
  let lostByProvider: string | undefined;
  const lost: { readonly id: string; readonly error: SandboxerError }[] = [];
  // The key record names the sandbox, unless it was created another way or deleted; then search all of them.
  for (const record of claimed ?? (await listSandboxes(context, { key }))) {
    const { id, spec_hash } = record;
    if (found === undefined && spec_hash === plan.about.spec_hash && !(await restedTooLong(context, id))) {
      await renewTime(context, record, plan);
      const had = await healthy(context, id, options).catch(unlessLost);
      if (had instanceof SandboxerError) lost.push({ id, error: had });
      else found = had;
      if (had !== undefined) continue;
      if (lostByProvider === undefined && found === undefined && (await isLostByProvider(context, id))) {
        lostByProvider = id;
        continue;
      }
    }
    const ending = endOf(context, id, options);
    // The provider would find and remove a sandbox that another server runs.
    if (found === undefined) await ending.catch(throwIfInUse);
    await context.reported("end of a sandbox that no longer matches its key", ending);
  }
  if (found === undefined && lost[0] !== undefined) throw lost[0].error;
  for (const { id } of lost) await context.reported("end of an unusable sandbox", endOf(context, id, options));
  if (found === undefined) return { found, lostByProvider };
  if (lostByProvider !== undefined)
    await context.reported("end of an unusable sandbox", endOf(context, lostByProvider, options));
  return { found, lostByProvider: undefined };
}

/** Whether the provider was to keep the sandbox and no copy runs here, so that a new copy can replace it. */
async function isLostByProvider(context: ManagerContext, id: string): Promise<boolean> {
  if (context.sandboxes.has(id)) return false;
  const head = await context.storedHead(id);
  return head?.residence === "provider" && head.state !== "deleted";
}

/**
 * If the newest sandbox has no intact checkpoint, use an older one. If there is none, keep it and report the damage.
 */
function unlessLost(thrown: unknown): SandboxerError {
  const error = asSandboxerError(thrown);
  const nothingWhole = error.code === "image_damaged" && error.details["whole_checkpoint"] === null;
  if (!nothingWhole || error.details["data_key"] !== undefined) throw error;
  return error;
}

export async function endOf(context: ManagerContext, id: string, options: VerbOptions): Promise<void> {
  await destroyById(context, id, undefined);
  options.operation?.destroyed.push(id);
}

function throwIfInUse(thrown: unknown): void {
  const error = asSandboxerError(thrown);
  if (error.code === "lease_held" || error.code === "sandbox_in_use") throw error;
}

async function claimedSandbox(
  context: ManagerContext,
  { about }: SandboxPlan,
  key: string,
): Promise<readonly SandboxRecord[] | undefined> {
  const id = await context.durable.claims.get(key);
  const record = id === undefined ? undefined : await recordOf(context, id, key);
  return record?.spec_hash === about.spec_hash ? [record] : undefined;
}

/** A sandbox with this key that still exists. */
export async function recordOf(context: ManagerContext, id: string, key: string): Promise<SandboxRecord | undefined> {
  try {
    const record = await findSandbox(context, id);
    return record.key === key && record.state !== "destroyed" ? record : undefined;
  } catch (thrown) {
    const error = asSandboxerError(thrown);
    // A sandbox whose record cannot be read is skipped; if the store is unavailable, nothing is known.
    if (error.row.retryable) throw error;
    return undefined;
  }
}

/** The request sets the lifetime from now on; an expired sandbox is wanted again. */
async function renewTime(context: ManagerContext, record: SandboxRecord, plan: SandboxPlan): Promise<void> {
  const { expires_at, on_expiry = record.on_expiry } = plan.about;
  if (record.expires_at === expires_at && record.on_expiry === on_expiry) return;
  const renewed = amendSandbox(context, record.id, undefined, { expires_at, on_expiry });
  await context.reported("new expiry of a sandbox", renewed);
}

/**
 * A sandbox that is unavailable now, because another server uses it or its newest state is damaged, is not replaced:
 * its state and its intact checkpoints would be lost.
 */
async function healthy(context: ManagerContext, id: string, options: VerbOptions): Promise<LiveSandbox | undefined> {
  try {
    const sandbox = await resumeAmongOthers(context, id, options);
    await sandbox.handle.ping({ signal: AbortSignal.timeout(PING_MS) });
    return sandbox;
  } catch (thrown) {
    const error = asSandboxerError(thrown);
    if (MAY_COME_BACK.has(error.code)) throw error;
    if (error.code === "image_damaged") throw keptThoughDamaged(error, id);
    context.options.observer.problem("a sandbox of a key is replaced", { sandboxId: id, error });
    return undefined;
  }
}

/** Whether to use an older state, or none, is not this server's decision. */
function keptThoughDamaged(error: SandboxerError, id: string): SandboxerError {
  return new SandboxerError(error.code, error.message, {
    cause: error,
    hint: `${error.hint} The key belongs to this sandbox until you delete it: \`sandboxer rm ${id}\`.`,
    details: { ...error.details, sandbox_id: id },
  });
}

/** Other requests for the same key may be moving the sandbox right now, so try again a moment later. */
async function resumeAmongOthers(context: ManagerContext, id: string, options: VerbOptions): Promise<LiveSandbox> {
  const { clock, handoffTimeoutMs } = context.options;
  const endMs = context.nowMs + handoffTimeoutMs;
  for (;;) {
    try {
      return await resumeSandbox(context, { sandboxId: id }, options);
    } catch (thrown) {
      const { code, details } = asSandboxerError(thrown);
      const moving = code === "lease_held" || code === "wrong_state" || code === "sandbox_in_use";
      const stays = details["refused"] === IN_USE || details["expires_at"] !== undefined;
      if (!moving || stays || context.nowMs >= endMs) throw thrown;
      await clock.sleep(100 + Math.random() * 200);
    }
  }
}

const PING_MS = 10_000;

const MAY_COME_BACK: ReadonlySet<string> = new Set<ErrorCode>([
  "lease_held",
  "sandbox_in_use",
  "wrong_state",
  "store_unavailable",
  "draining",
  "limit_reached",
  "no_space",
  "image_incompatible",
  "no_fitting_server",
  "secret_unavailable",
  "key_required",
  "wrong_key",
  "key_unavailable",
]);

/** Whether a sandbox was stopped for longer than sandboxes with a key are kept. A running sandbox was not stopped. */
async function restedTooLong(context: ManagerContext, sandboxId: string): Promise<boolean> {
  if (context.sandboxes.has(sandboxId)) return false;
  const { clock, resumeTtlMs } = context.options;
  const head = await context.storedHead(sandboxId);
  if (head?.owner !== null) return false;
  const since = head.residence === "provider" ? head.stopped_at : head.timestamps.updated_at;
  return since != null && clock.wallMs() - Date.parse(since) > resumeTtlMs;
}
