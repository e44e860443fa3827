import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { AcquireTier, CreateRequestBody, ErrorCode, SandboxRecord } from "@sandboxer/protocol";
import { isKeyProblem } from "../../checkpoints/keys/key-errors.ts";
import { amendSandbox } from "./amend.ts";
import type { ManagerContext } from "../context.ts";
import { createSandbox } from "./create.ts";
import { destroySandbox } from "./destroy.ts";
import { checkAsked, takeShownKey } from "../encryption.ts";
import { IN_USE } from "../ownership/yield.ts";
import { destroyById } from "./destroy-by-id.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { listSandboxes } from "../observing/list-sandboxes.ts";
import { findSandbox } from "../observing/describe.ts";
import { adoptByKey } from "./adopt-by-key.ts";
import { planSandbox, type SandboxPlan } from "./plan.ts";
import { restoreSandbox } from "./restore.ts";
import { resumeSandbox } from "./resume.ts";
import { restoreFrom } from "../snapshots/restore-snapshot.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";

export interface AcquiredSandbox {
  readonly sandbox: LiveSandbox;
  readonly tier: AcquireTier;
  /** Of a new sandbox. */
  readonly token: string | null;
}

type KeyedRequest = CreateRequestBody & { readonly key: string };

/**
 * The sandbox with a key. First the one that is there, wherever it runs or is stored, if it is made of the same; else one
 * from the newest snapshot of one that was; else a fresh one. What has the key and is made of something else, what was
 * stopped for too long, and older ones that fit, are destroyed. Two that ask at once get the same one.
 */
export async function acquireSandbox(
  context: ManagerContext,
  body: KeyedRequest,
  options: VerbOptions = {},
): Promise<AcquiredSandbox> {
  const acquired = await context.keys.run(body.key, () => acquire(context, body, options));
  const { sandbox, tier } = acquired;
  context.events.append({ type: "sandbox.acquired", sandboxId: sandbox.id, data: { key: body.key, tier } });
  return acquired;
}

async function acquire(context: ManagerContext, body: KeyedRequest, options: VerbOptions): Promise<AcquiredSandbox> {
  const plan = await planSandbox(context, body, "durable");
  const { found, emptied } = await reattach(context, plan, body.key, options);
  const revived = emptied === undefined ? undefined : await revive(context, plan, emptied, options);
  const there = found ?? (revived === undefined ? await adoptByKey(context, plan, options) : undefined);
  if (there !== undefined) {
    checkAsked(context, there, options.encryption);
    takeShownKey(there, options.encryption);
    await renewPromise(context, there, body);
    return { sandbox: there, tier: "reattached", token: null };
  }
  const made = revived ??
    (await restoreNewest(context, plan, body.key, options)) ?? {
      ...(await createSandbox(context, { plan }, options)),
      tier: "fresh" as const,
    };
  const isThere = async (id: string): Promise<boolean> => (await recordOf(context, id, body.key)) !== undefined;
  if (await context.durable.claims.take(body.key, made.sandbox.id, isThere)) return made;
  // Another server was faster: what it has made is what the key stands for.
  await destroySandbox(context, made.sandbox);
  options.operation?.destroyed.push(made.sandbox.id);
  return acquire(context, body, options);
}

async function restoreNewest(
  context: ManagerContext,
  plan: SandboxPlan,
  key: string,
  options: VerbOptions,
): Promise<AcquiredSandbox | undefined> {
  const snapshot = await newestSnapshotOf(context, key, plan.about.spec_hash);
  if (snapshot === undefined) return undefined;
  try {
    const { about, labels } = plan;
    return { ...(await restoreFrom(context, snapshot, { labels }, options, { about })), tier: "restored" };
  } catch (error) {
    // It is there, for who has the key.
    if (isKeyProblem(error)) throw error;
    context.options.observer.problem("a snapshot of a key could not be restored", { key, error });
    return undefined;
  }
}

/**
 * One that its provider has lost goes on from its newest snapshot, as itself: with its id, name, labels and token. Where
 * that cannot be, it is ended.
 */
async function revive(
  context: ManagerContext,
  plan: SandboxPlan,
  sandboxId: string,
  options: VerbOptions,
): Promise<AcquiredSandbox | undefined> {
  try {
    const snapshot = await newestSnapshotOf(context, plan.about.key ?? "", plan.about.spec_hash);
    if (snapshot?.sandbox_id === sandboxId) {
      const head = await context.storedHead(sandboxId);
      const request = { sandboxId, head, snapshot, checkpoint: undefined, onOwnership: () => {} };
      const sandbox = await context.taking.run(sandboxId, () => restoreSandbox(context, request, options));
      return { sandbox, tier: "restored", token: null };
    }
  } catch (error) {
    if (isKeyProblem(error)) throw error;
    context.options.observer.problem("a sandbox that its provider has lost could not be restored", {
      sandboxId,
      error,
    });
  }
  await context.reported("end of a sandbox that its provider has lost", endOf(context, sandboxId, options));
  return undefined;
}

interface Reattached {
  /** The newest sandbox with the key that is made of the same and answers. */
  readonly found: LiveSandbox | undefined;
  /** If there is none: the id of one that would be it, and that its provider has lost. */
  readonly emptied: string | undefined;
}

async function reattach(
  context: ManagerContext,
  plan: SandboxPlan,
  key: string,
  options: VerbOptions,
): Promise<Reattached> {
  const claimed = await claimedSandbox(context, plan, key);
  let found: LiveSandbox | undefined;
  let emptied: string | undefined;
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
      if (emptied === undefined && found === undefined && (await isEmptied(context, id))) {
        emptied = id;
        continue;
      }
    }
    const ending = endOf(context, id, options);
    // Its provider would find and remove what another server runs.
    if (found === undefined) await ending.catch(throwIfInUse);
    await context.reported("end of a sandbox that its key does not stand for any more", ending);
  }
  if (found === undefined && lost[0] !== undefined) throw lost[0].error;
  for (const { id } of lost)
    await context.reported("end of a sandbox that nobody can have", endOf(context, id, options));
  if (found === undefined) return { found, emptied };
  if (emptied !== undefined)
    await context.reported("end of a sandbox that nobody can have", endOf(context, emptied, options));
  return { found, emptied: undefined };
}

/** Whether its provider was to have it, and nothing runs of it here: what it was can go on under its id. */
async function isEmptied(context: ManagerContext, id: string): Promise<boolean> {
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

async function endOf(context: ManagerContext, id: string, options: VerbOptions): Promise<void> {
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
async function recordOf(context: ManagerContext, id: string, key: string): Promise<SandboxRecord | undefined> {
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
  await context.reported("new time of a sandbox", renewed);
}

/** A promise that was asked for holds from now on; one that could not be noted would not be kept. */
async function renewPromise(context: ManagerContext, { id, facts }: LiveSandbox, body: KeyedRequest): Promise<void> {
  const { max_loss } = body;
  if (max_loss !== undefined && max_loss !== facts.about.max_loss)
    await amendSandbox(context, id, undefined, { max_loss });
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
    hint: `${error.hint} The key stands for it as long as it is there: \`sandboxer destroy ${id}\` gives it up.`,
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

/** The newest snapshot of a sandbox that was asked for by this key and made of the same. */
async function newestSnapshotOf(
  { options }: ManagerContext,
  key: string,
  specHash: string | null,
): Promise<StoredSnapshot | undefined> {
  const fitting = (await options.durable.snapshots.list()).filter(
    (snapshot) => snapshot.state === "ready" && snapshot.key === key && snapshot.spec_hash === specHash,
  );
  return fitting.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))[0];
}
