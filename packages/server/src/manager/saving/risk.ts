import { cutMessage } from "../../support/cut-message.ts";
import type { SavingContext } from "../room-contexts.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** Reported once until max_loss is met again, and once more if a delayed save fails. */
export function raiseRisk(
  context: SavingContext,
  sandbox: LiveSandbox,
  why: { readonly late: string } | { readonly failure: string },
): void {
  const hasFailed = "failure" in why;
  const present = sandbox.atRisk;
  if (present !== undefined && (present.hasFailed || !hasFailed)) return;
  const reason = cutMessage(hasFailed ? why.failure : why.late);
  const since = present?.since ?? new Date(context.options.clock.wallMs()).toISOString();
  const maxLoss = sandbox.facts.about.max_loss;
  sandbox.atRisk = { since, reason, hasFailed, sinceMs: present?.sinceMs ?? context.nowMs, maxLoss };
  const data = { max_loss: maxLoss, since, reason, last_saved_at: lastSavedAt(context, sandbox) };
  context.events.append({ type: "durability.at_risk", sandboxId: sandbox.id, data });
  context.options.observer.problem("max_loss of a sandbox is not met", {
    sandboxId: sandbox.id,
    reason,
  });
}

/** Reports nothing for a sandbox that was not at risk. */
export function endRisk(context: SavingContext, sandbox: LiveSandbox): void {
  const risk = sandbox.atRisk;
  if (risk === undefined) return;
  sandbox.atRisk = undefined;
  const at_risk_ms = Math.round(context.nowMs - risk.sinceMs);
  const data = {
    max_loss: sandbox.facts.about.max_loss,
    since: risk.since,
    at_risk_ms,
    last_saved_at: lastSavedAt(context, sandbox),
  };
  context.events.append({ type: "durability.restored", sandboxId: sandbox.id, data });
}

function lastSavedAt({ options }: SavingContext, { id }: LiveSandbox): string | null {
  return options.durable.ownership.held(id)?.checkpoint?.created_at ?? null;
}
