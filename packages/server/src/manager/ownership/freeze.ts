import { SandboxerError } from "@sandboxer/protocol";
import type { FreezeContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** How often one who waits for the thaw looks at the clock: a stall of this process may have hidden it. */
const LOOK_MS = 50;

/** How long a call waits for the thaw of a sandbox that is held still; most are over in less. */
export const CALL_PATIENCE_MS = 5_000;

/**
 * Holds sandboxes still while this server cannot prove that it is alive: others may believe that it is dead, and nobody
 * but one may let a sandbox run. Of what its provider keeps there is one copy, which need not stand still: this server
 * neither asks it for anything nor tells what it hears of it.
 */
export function freezeSandboxes(context: FreezeContext, sandboxIds: readonly string[]): void {
  for (const sandboxId of sandboxIds) {
    const sandbox = context.sandboxes.get(sandboxId);
    // One that is saved or brought back is silent already; it is looked at again when it is about to go on.
    if (sandbox?.state !== "running" || !sandbox.outlivesServer) continue;
    if (sandbox.frozenMs === undefined) {
      sandbox.frozenMs = context.nowMs;
      const message = context.durable.ownership.instances.frozenReason ?? null;
      context.events.append({ type: "sandbox.frozen", sandboxId, data: { reason: "lease_not_renewed", message } });
    }
    if (sandbox.facts.residence === "store") context.inBackground("freeze of a sandbox", freeze(sandbox));
  }
}

/** A copy that cannot be held still must not be there at all: somebody else may run the sandbox soon. */
async function freeze(sandbox: LiveSandbox): Promise<void> {
  try {
    await sandbox.handle.freeze().catch(() => sandbox.handle.freeze());
  } catch (thrown) {
    if (sandbox.state === "gone") return;
    const error = new SandboxerError(
      "sandbox_failed",
      "The sandbox could not be frozen when the server's lease ran out.",
    );
    sandbox.moveTo("gone");
    sandbox.client?.notify({ type: "failed", error });
    await sandbox.handle.destroy();
    throw thrown;
  }
}

export function thawSandboxes(context: FreezeContext, sandboxIds: readonly string[]): void {
  for (const sandboxId of sandboxIds) {
    const sandbox = context.sandboxes.get(sandboxId);
    if (sandbox?.frozenMs === undefined) continue;
    const frozen_ms = Math.round(context.nowMs - sandbox.frozenMs);
    sandbox.frozenMs = undefined;
    context.events.append({ type: "sandbox.thawed", sandboxId, data: { frozen_ms } });
    if (sandbox.facts.residence === "store") context.inBackground("thaw of a sandbox", sandbox.handle.thaw());
  }
}

/** For a sandbox that has just come to run, which nobody has told of the freeze. */
export function freezeIfDue(context: FreezeContext, sandbox: LiveSandbox): void {
  if (isFrozen(context, sandbox)) freezeSandboxes(context, [sandbox.id]);
}

/** Whether nothing of a sandbox may be heard or changed now. By the clock, so that it is true right after a stall. */
export function isFrozen(context: FreezeContext, sandbox: LiveSandbox): boolean {
  return sandbox.outlivesServer && sandbox.state === "running" && context.durable.ownership.instances.frozen;
}

export interface Patience {
  /** The caller has gone. */
  readonly signal?: AbortSignal | undefined;
  /** Absent: as long as it takes. */
  readonly limitMs?: number | undefined;
}

/** Waits until a sandbox may be heard and changed again, or for as long as the caller's patience lasts. */
export async function untilThawed(
  context: FreezeContext,
  sandbox: LiveSandbox,
  { signal, limitMs = Infinity }: Patience = {},
): Promise<void> {
  const endMs = context.nowMs + limitMs;
  while (isFrozen(context, sandbox)) {
    if (signal?.aborted === true || context.nowMs >= endMs) throw frozen();
    await context.options.clock.sleep(LOOK_MS, signal).catch(() => {});
  }
}

function frozen(): SandboxerError {
  return new SandboxerError("store_unavailable", "The server cannot renew its lease, so it has frozen the sandbox.", {
    hint: "The sandbox continues when the server reaches its store again. Try again then, or see the server's log.",
  });
}
