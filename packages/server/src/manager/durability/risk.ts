import type { MaxLoss } from "@sandboxer/protocol";
import { cutMessage } from "../../support/cut-message.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** Why more of a sandbox could be lost than was promised. */
export interface AtRisk {
  /** ISO 8601. */
  readonly since: string;
  readonly reason: string;
  readonly sinceMs: number;
  /** What was promised then. */
  readonly maxLoss: MaxLoss | null;
}

/** Told once, until the promise is kept again. */
export function raiseRisk(context: ManagerContext, sandbox: LiveSandbox, why: string): void {
  if (context.atRisk.has(sandbox)) return;
  const reason = cutMessage(why);
  const since = new Date(context.options.clock.wallMs()).toISOString();
  const maxLoss = sandbox.facts.about.max_loss;
  context.atRisk.set(sandbox, { since, reason, sinceMs: context.nowMs, maxLoss });
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
  return options.durable?.ownership.held(id)?.checkpoint?.created_at ?? null;
}
