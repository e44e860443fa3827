import type { AcquireTier, CreateRequestBody } from "@sandboxer/protocol";
import { isKeyProblem } from "../../checkpoints/keys/key-errors.ts";
import { amendSandbox } from "./amend.ts";
import type { ManagerContext } from "../context.ts";
import { createSandbox } from "./create.ts";
import { destroySandbox } from "./destroy.ts";
import { takeShownKey } from "../encryption.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { adoptByKey } from "./adopt-by-key.ts";
import { isPreference } from "../ownership/affinity.ts";
import { planSandbox, type SandboxPlan } from "./plan.ts";
import { endOf, reattach, recordOf } from "./reattach.ts";
import { restoreSandbox } from "./restore.ts";
import { restoreFrom } from "../snapshots/restore-snapshot.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";

export interface AcquiredSandbox {
  readonly sandbox: LiveSandbox;
  readonly tier: AcquireTier;
  /** The token of a new sandbox. */
  readonly token: string | null;
}

type KeyedRequest = CreateRequestBody & { readonly key: string };

/**
 * The sandbox with a key: the existing one, wherever it runs or is stored, if it has the same spec; else one from the newest
 * snapshot of that key and spec; else a fresh one. Callers that ask at the same time get the same sandbox.
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
  const { found, lostByProvider } = await reattach(context, plan, body.key, options);
  const revived =
    lostByProvider === undefined ? undefined : await startFromSnapshot(context, plan, lostByProvider, options);
  const there = found ?? (revived === undefined ? await adoptByKey(context, plan, options) : undefined);
  if (there !== undefined) {
    takeShownKey(context, there, options.encryption);
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
  // Another server was faster: the key belongs to its sandbox.
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
    // The sandbox exists, for the caller with the key; or another server is preferred, which restores it.
    if (isKeyProblem(error) || isPreference(error)) throw error;
    context.options.observer.problem("the snapshot of a key could not be restored", { key, error });
    return undefined;
  }
}

/**
 * Starts a sandbox that its provider has lost from its newest snapshot. It keeps its id, name, labels and token. Where there
 * is no such snapshot, or it cannot be loaded, the sandbox is destroyed.
 */
async function startFromSnapshot(
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
    context.options.observer.problem("a sandbox that its provider lost could not be restored", {
      sandboxId,
      error,
    });
  }
  await context.reported("deletion of a sandbox that its provider lost", endOf(context, sandboxId, options));
  return undefined;
}

/** A requested max_loss holds from now on; if it cannot be recorded, the request fails. */
async function renewPromise(context: ManagerContext, { id, facts }: LiveSandbox, body: KeyedRequest): Promise<void> {
  const { max_loss } = body;
  if (max_loss !== undefined && max_loss !== facts.about.max_loss)
    await amendSandbox(context, id, undefined, { max_loss });
}

/** The newest snapshot of a sandbox with this key and spec that was taken on request. */
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
