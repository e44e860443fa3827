import type { SandboxIdentity } from "../backend.ts";
import type { DaytonaSandbox } from "./api-schemas.ts";
import { LABELS } from "./labels.ts";
import { phaseOf } from "./sandbox-state.ts";

export interface Candidates {
  /** The newest first. */
  readonly fitting: readonly DaytonaSandbox[];
  /** They have the key and must not be found again. */
  readonly stale: readonly DaytonaSandbox[];
}

/**
 * Selects the sandboxes with a key that may be resumed: same spec, not failed, not stopped for longer than the idle
 * time. Sandboxes that Daytona is already removing are in neither list.
 */
export function chooseCandidates(
  found: readonly DaytonaSandbox[],
  identity: SandboxIdentity | undefined,
  nowMs: number,
): Candidates {
  const there = found.filter(({ state }) => phaseOf(state) !== "gone");
  const fits = (sandbox: DaytonaSandbox): boolean => {
    const phase = phaseOf(sandbox.state);
    if (phase === "failed") return false;
    if (identity === undefined) return true;
    if (sandbox.labels?.[LABELS.specHash] !== identity.specHash) return false;
    return phase !== "resting" || nowMs - restingSinceMs(sandbox, nowMs) <= identity.idleTtlMs;
  };
  const [fitting, stale] = [there.filter(fits), there.filter((sandbox) => !fits(sandbox))];
  return { fitting: fitting.toSorted((a, b) => timeOf(b.createdAt) - timeOf(a.createdAt)), stale };
}

/** Daytona records the change of state as an update; a sandbox without one has just stopped. */
export function restingSinceMs({ updatedAt, lastActivityAt }: DaytonaSandbox, nowMs: number): number {
  const since = timeOf(updatedAt ?? lastActivityAt ?? undefined);
  return since === 0 ? nowMs : since;
}

function timeOf(text: string | undefined): number {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? 0 : ms;
}
