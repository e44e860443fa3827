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
  /** Where none was found: the id of the sandbox with the key whose copy the provider has lost. */
  readonly lostByProvider: string | undefined;
}

/**
 * Looks for the sandbox with a key and makes it run here. Sandboxes with the key that have another spec, were stopped for
 * too long, or are older than the one that is found, are destroyed.
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
  // The key says which one it is, unless it was made another way, or is gone: then all are looked through.
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
    // Its provider would find and remove what another server runs.
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

/** Whether its provider was to keep it and no copy runs here, so that a new copy can take its place. */
async function isLostByProvider(context: ManagerContext, id: string): Promise<boolean> {
  if (context.sandboxes.has(id)) return false;
  const head = await context.storedHead(id);
  return head?.residence === "provider" && head.state !== "deleted";
}

/** One of which nothing is whole is passed over for an older one that can be had; for none it does not go. */
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

/** A sandbox with this key that is still there. */
export async function recordOf(context: ManagerContext, id: string, key: string): Promise<SandboxRecord | undefined> {
  try {
    const record = await findSandbox(context, id);
    return record.key === key && record.state !== "destroyed" ? record : undefined;
  } catch (thrown) {
    const error = asSandboxerError(thrown);
    // One whose record cannot be read is not there; a store that is away says nothing about it.
    if (error.row.retryable) throw error;
    return undefined;
  }
}

/** Who asks for a sandbox says how long it is to live from now on; one whose time was over is wanted again. */
async function renewTime(context: ManagerContext, { id, expires_at }: SandboxRecord, plan: SandboxPlan): Promise<void> {
  const wanted = plan.about.expires_at;
  if (expires_at === wanted) return;
  const renewed = amendSandbox(context, id, undefined, { expires_at: wanted });
  await context.reported("new expiry of a sandbox", renewed);
}

/**
 * One that cannot be had now, because another server uses it, or because its newest state is damaged, is not replaced:
 * what it has, and what is whole of it, would be lost.
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

/** Whether to go on with an older state, or without any, is not for this server to choose. */
function keptThoughDamaged(error: SandboxerError, id: string): SandboxerError {
  return new SandboxerError(error.code, error.message, {
    cause: error,
    hint: `${error.hint} The key belongs to this sandbox until you delete it: \`sandboxer rm ${id}\`.`,
    details: { ...error.details, sandbox_id: id },
  });
}

/** Others who ask for the same key may be moving it just now: then it is there a moment later. */
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
  "secret_unavailable",
  "key_required",
  "wrong_key",
  "key_unavailable",
]);

/**
 * Whether a sandbox was stopped for longer than sandboxes with a key are kept: then its key stands for nothing. One that
 * somebody runs was not stopped.
 */
async function restedTooLong(context: ManagerContext, sandboxId: string): Promise<boolean> {
  if (context.sandboxes.has(sandboxId)) return false;
  const { clock, resumeTtlMs } = context.options;
  const head = await context.storedHead(sandboxId);
  if (head?.owner !== null) return false;
  const since = head.residence === "provider" ? head.stopped_at : head.timestamps.updated_at;
  return since != null && clock.wallMs() - Date.parse(since) > resumeTtlMs;
}
