import { asSandboxerError, type SandboxRecord } from "@sandboxer/protocol";
import type { ManagerContext } from "./context.ts";
import { destroyById } from "./destroy-by-id.ts";
import { listSandboxes } from "./look-up.ts";

export interface Expiry {
  readonly expired: readonly SandboxRecord[];
  readonly failed: readonly { readonly id: string; readonly message: string }[];
}

/** The sandboxes past their time to live, wherever they are; with `apply` they are destroyed. */
export async function expireSandboxes(context: ManagerContext, apply: boolean): Promise<Expiry> {
  const nowMs = context.options.clock.wallMs();
  const expired = (await listSandboxes(context, {})).filter(
    ({ expires_at }) => expires_at !== null && Date.parse(expires_at) <= nowMs,
  );
  const failed: { id: string; message: string }[] = [];
  if (!apply) return { expired, failed };
  for (const { id, epoch } of expired) {
    // Whoever has extended its time meanwhile has changed nothing but the head: look again.
    await destroyIfStillExpired(context, id, epoch ?? undefined).catch((error: unknown) => {
      failed.push({ id, message: asSandboxerError(error).message });
    });
  }
  return { expired, failed };
}

async function destroyIfStillExpired(context: ManagerContext, id: string, epoch: number | undefined): Promise<void> {
  const head = await context.options.durable?.ownership.read(id);
  const expiresAt = context.sandboxes.get(id)?.facts.about.expires_at ?? head?.about?.expires_at ?? null;
  if (expiresAt === null || Date.parse(expiresAt) > context.options.clock.wallMs()) return;
  await destroyById(context, id, epoch);
}
