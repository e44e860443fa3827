import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import type { Clock } from "../../support/clock.ts";
import type { DaytonaSandbox } from "./api-schemas.ts";
import type { DaytonaApi } from "./daytona-api.ts";
import type { DaytonaTiming } from "./daytona-options.ts";
import { describeState, type Phase, phaseOf } from "./sandbox-state.ts";

export interface Waiter {
  readonly api: DaytonaApi;
  readonly clock: Clock;
  readonly timing: DaytonaTiming;
}

const BACKOFF = 1.6;

/** States before an image is ready: they may take as long as a build. */
const BUILDING: ReadonlySet<string> = new Set(["pending_build", "building_snapshot", "pulling_snapshot"]);

/**
 * Polls, less and less often, until the sandbox is in one of the phases. A failed sandbox fails at once with Daytona's
 * reason; one that disappears unexpectedly is `sandbox_not_found`.
 */
export async function waitForPhase(
  { api, clock, timing }: Waiter,
  sandbox: DaytonaSandbox,
  wanted: readonly Phase[],
  options: CallOptions = {},
): Promise<DaytonaSandbox> {
  const startMs = clock.monotonicMs();
  let [latest, delayMs] = [sandbox, timing.firstPollMs];
  for (;;) {
    const phase = phaseOf(latest.state);
    if (wanted.includes(phase)) return latest;
    if (phase === "failed") throw failed(latest);
    if (phase === "gone") throw new SandboxerError("sandbox_not_found", `Daytona removed the sandbox ${latest.id}.`);
    const building = BUILDING.has(latest.state ?? "");
    const limitMs = building ? timing.buildTimeoutMs : timing.changeTimeoutMs;
    if (clock.monotonicMs() - startMs > limitMs) {
      const said = `Daytona's sandbox ${latest.id} still has ${describeState(latest.state)} after ${limitMs} ms.`;
      throw new SandboxerError("timeout", said, { details: { vendor_state: latest.state ?? null } });
    }
    options.onProgress?.({ phase: latest.state ?? "waiting" });
    await clock.sleep(delayMs, options.signal);
    delayMs = Math.min(timing.maxPollMs, delayMs * BACKOFF);
    latest = await api.get(latest.id, { signal: options.signal });
  }
}

export function failed({ id, state, errorReason }: DaytonaSandbox): SandboxerError {
  const reason = errorReason ?? "Daytona gives no reason.";
  return new SandboxerError("sandbox_failed", `Daytona's sandbox ${id} has ${describeState(state)}: ${reason}`, {
    hint: "Create a new sandbox. Daytona's dashboard has the details of the failed one.",
    details: { vendor_state: state ?? null, vendor_reason: errorReason ?? null },
  });
}

const SNAPSHOT_FAILED: ReadonlySet<string> = new Set(["error", "build_failed", "removing"]);

/** A snapshot can be used once it is active: https://www.daytona.io/docs/en/snapshots/#snapshot-lifecycle */
export async function waitForSnapshot(
  { api, clock, timing }: Waiter,
  name: string,
  options: CallOptions,
): Promise<void> {
  const startMs = clock.monotonicMs();
  let delayMs = timing.firstPollMs;
  for (;;) {
    const { state, errorReason } = await api.findSnapshot(name, { signal: options.signal });
    if (state === "active" || state === "inactive") return;
    if (SNAPSHOT_FAILED.has(state)) {
      const reason = errorReason ?? "Daytona gives no reason.";
      throw new SandboxerError("checkpoint_failed", `Daytona's snapshot ${name} has the state "${state}": ${reason}`);
    }
    if (clock.monotonicMs() - startMs > timing.buildTimeoutMs) {
      const said = `Daytona's snapshot ${name} still has the state "${state}" after ${timing.buildTimeoutMs} ms.`;
      throw new SandboxerError("timeout", said);
    }
    options.onProgress?.({ phase: state });
    await clock.sleep(delayMs, options.signal);
    delayMs = Math.min(timing.maxPollMs, delayMs * BACKOFF);
  }
}
