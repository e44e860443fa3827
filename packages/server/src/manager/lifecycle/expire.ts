import { asSandboxerError, type SandboxRecord } from "@sandboxer/protocol";
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
