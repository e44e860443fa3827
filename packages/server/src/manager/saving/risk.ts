import type { MaxLoss } from "@sandboxer/protocol";
import { cutMessage } from "../../support/cut-message.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** Why more of a sandbox could be lost than was promised. */
export interface AtRisk {
  /** ISO 8601. */
  readonly since: string;
  readonly reason: string;
  /** Whether a save has failed; else it is only late. */
  readonly hasFailed: boolean;
  readonly sinceMs: number;
  /** What was promised then. */
  readonly maxLoss: MaxLoss | null;
}

/** Told once, until the promise is kept again; and once more when what was late turns out to fail. */
export function raiseRisk(
  context: ManagerContext,
  sandbox: LiveSandbox,
  why: { readonly late: string } | { readonly failure: string },
): void {
  const hasFailed = "failure" in why;
  const present = context.atRisk.get(sandbox);
  if (present !== undefined && (present.hasFailed || !hasFailed)) return;
  const reason = cutMessage(hasFailed ? why.failure : why.late);
  const since = present?.since ?? new Date(context.options.clock.wallMs()).toISOString();
  const maxLoss = sandbox.facts.about.max_loss;
  context.atRisk.set(sandbox, { since, reason, hasFailed, sinceMs: present?.sinceMs ?? context.nowMs, maxLoss });
  const data = { max_loss: maxLoss, since, reason, last_saved_at: lastSavedAt(context, sandbox) };
  context.events.append({ type: "durability.at_risk", sandboxId: sandbox.id, data });
  context.options.observer.problem("more of a sandbox could be lost than was promised", {
    sandboxId: sandbox.id,
    reason,
  });
}

/** Nothing is told of a sandbox that was not at risk. */
export function endRisk(context: ManagerContext, sandbox: LiveSandbox): void {
  const risk = context.atRisk.get(sandbox);
  if (risk === undefined) return;
  context.atRisk.delete(sandbox);
  const at_risk_ms = Math.round(context.nowMs - risk.sinceMs);
  const data = {
    max_loss: sandbox.facts.about.max_loss,
    since: risk.since,
    at_risk_ms,
    last_saved_at: lastSavedAt(context, sandbox),
  };
  context.events.append({ type: "durability.restored", sandboxId: sandbox.id, data });
}

function lastSavedAt({ options }: ManagerContext, { id }: LiveSandbox): string | null {
  return options.durable.ownership.held(id)?.checkpoint?.created_at ?? null;
}
