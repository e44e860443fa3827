import { SandboxerError } from "@sandboxer/protocol";
import type { FreezeContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** How often a call that waits for the thaw checks the clock: a stall of this process may have hidden it. */
const LOOK_MS = 50;

/** How long a call waits for a frozen sandbox to thaw; most freezes are shorter. */
export const CALL_PATIENCE_MS = 5_000;

/**
 * Freezes sandboxes while this server cannot renew its lease: other servers may consider it dead, and only one server
 * may run a sandbox. A sandbox that its provider keeps has a single copy and need not freeze: this server just sends it
 * nothing and reports nothing from it.
 */
export function freezeSandboxes(context: FreezeContext, sandboxIds: readonly string[]): void {
  for (const sandboxId of sandboxIds) {
    const sandbox = context.sandboxes.get(sandboxId);
    // A sandbox that is being saved or restored is silent already; it is checked again before it continues.
    if (sandbox?.state !== "running" || !sandbox.outlivesServer) continue;
    if (sandbox.frozenMs === undefined) {
      sandbox.frozenMs = context.nowMs;
      const message = context.durable.ownership.instances.frozenReason ?? null;
      context.events.append({ type: "sandbox.frozen", sandboxId, data: { reason: "lease_not_renewed", message } });
    }
    if (sandbox.facts.residence === "store") context.inBackground("freeze of a sandbox", freeze(sandbox));
  }
}

/** A copy that cannot be frozen must be ended: another server may run the sandbox soon. */
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
    // One that is being saved was captured as it is; if its save fails, it is thawed then.
    if (sandbox.facts.residence === "store" && sandbox.state === "running")
      context.inBackground("thaw of a sandbox", sandbox.handle.thaw());
  }
}

/** For a sandbox that just started and was not told of the freeze. */
export function freezeIfDue(context: FreezeContext, sandbox: LiveSandbox): void {
  if (isFrozen(context, sandbox)) freezeSandboxes(context, [sandbox.id]);
}

/** Whether a sandbox must be neither read nor changed now. Uses the clock, so that it is right after a stall. */
export function isFrozen(context: FreezeContext, sandbox: LiveSandbox): boolean {
  return sandbox.outlivesServer && sandbox.state === "running" && context.durable.ownership.instances.frozen;
}

/** For work that waited for its turn: a frozen sandbox would not answer it, and nothing else would get a turn. */
export function checkNotFrozen(context: FreezeContext, sandbox: LiveSandbox): void {
  if (isFrozen(context, sandbox)) throw frozen();
}

export interface Patience {
  /** The caller disconnected. */
  readonly signal?: AbortSignal | undefined;
  /** Absent: no limit. */
  readonly limitMs?: number | undefined;
}

/** Waits until a sandbox may be used again, or until the caller's time limit. */
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
