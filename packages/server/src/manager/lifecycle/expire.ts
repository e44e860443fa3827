import { asSandboxerError, type About, type SandboxRecord } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { destroyById } from "./destroy-by-id.ts";
import { hasExpired } from "./time-to-live.ts";
import { listSandboxes } from "../observing/list-sandboxes.ts";
import { findSandbox } from "../observing/describe.ts";

export interface Expiry {
  readonly expired: readonly SandboxRecord[];
  readonly failed: readonly { readonly id: string; readonly message: string }[];
}

/** The expired sandboxes, wherever they are; with `apply` they are deleted. */
export async function expireSandboxes(context: ManagerContext, apply: boolean): Promise<Expiry> {
  const expired = (await listSandboxes(context, {})).filter(({ expires_at }) => hasExpired(context, expires_at));
  if (!apply) return { expired, failed: [] };
  const destroyed: SandboxRecord[] = [];
  const failed: { id: string; message: string }[] = [];
  for (const record of expired) {
    try {
      if (await destroyIfStillExpired(context, record)) destroyed.push(record);
    } catch (error) {
      failed.push({ id: record.id, message: asSandboxerError(error).message });
    }
  }
  return { expired: destroyed, failed };
}

/** Extending the lifetime only changes the record, so read it again. */
async function destroyIfStillExpired(context: ManagerContext, { id, epoch }: SandboxRecord): Promise<boolean> {
  if (!hasExpired(context, (await findSandbox(context, id)).expires_at)) return false;
  await destroyById(context, id, epoch ?? undefined);
  return true;
}

/** How often the known ends of lifetimes are compared with the clock. */
const LOOK_MS = 1_000;
/** The whole store is read after a start and then this often: a server that paused such a sandbox may have ended. */
const FIRST_PASS_MS = 5_000;
const PASS_MS = 60 * 60_000;

/** Remembers when to delete a sandbox. */
export function noteExpiry({ expiring }: ManagerContext, sandboxId: string, about: About | undefined): void {
  if (about?.on_expiry === "delete" && about.expires_at !== null) expiring.set(sandboxId, Date.parse(about.expires_at));
  else expiring.delete(sandboxId);
}

/**
 * Deletes paused sandboxes at the end of their lifetime, if they ask for it; those that run here are deleted by
 * `idle.ts`. Returns a function that stops it.
 */
export function deleteExpiredSandboxes(context: ManagerContext): () => void {
  let passMs = context.nowMs + FIRST_PASS_MS;
  const timer = setInterval(() => {
    if (context.draining || context.durable.ownership.instances.frozen) return;
    for (const { id, facts } of context.sandboxes.values()) noteExpiry(context, id, facts.about);
    if (context.nowMs >= passMs) {
      passMs = context.nowMs + PASS_MS;
      context.inBackground("search for expired sandboxes", readExpiries(context));
    }
    for (const [sandboxId, atMs] of context.expiring) {
      if (atMs > context.options.clock.wallMs() || context.sandboxes.has(sandboxId)) continue;
      context.expiring.delete(sandboxId);
      context.inBackground("deletion of an expired sandbox", deleteStored(context, sandboxId));
    }
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

async function readExpiries(context: ManagerContext): Promise<void> {
  for await (const { sandboxId, head } of context.durable.ownership.list()) {
    if (head?.state === "parked") noteExpiry(context, sandboxId, head.about);
  }
}

/** Its lifetime may have been extended on another server, or that server deletes it. */
async function deleteStored(context: ManagerContext, sandboxId: string): Promise<void> {
  const head = await context.storedHead(sandboxId);
  if (head?.state !== "parked" || head.about?.on_expiry !== "delete") return;
  if (!hasExpired(context, head.about.expires_at)) return noteExpiry(context, sandboxId, head.about);
  await destroyById(context, sandboxId, head.epoch).catch((error: unknown) => {
    if (!SETTLED.has(asSandboxerError(error).code)) throw error;
  });
}

/** Another server was faster, or somebody has resumed or deleted it. */
const SETTLED: ReadonlySet<string> = new Set(["sandbox_not_found", "sandbox_destroyed", "stale_epoch", "wrong_state"]);
