import type { SandboxEnd } from "../backend.ts";
import { vendorStatus } from "./daytona-errors.ts";
import { describeState, phaseOf } from "./sandbox-state.ts";
import type { Waiter } from "./wait-for-state.ts";

/** Asks from time to time, and says how it ended when it did so by itself; undefined when nobody wants to know. */
export async function watchSandbox(
  { api, clock, timing }: Waiter,
  vendorId: string,
  signal: AbortSignal,
): Promise<SandboxEnd | undefined> {
  while (!signal.aborted) {
    try {
      await clock.sleep(timing.watchMs, signal);
      const { state, errorReason } = await api.get(vendorId, { signal });
      const phase = phaseOf(state);
      if (phase === "running" || phase === "transition") continue;
      const why = typeof errorReason === "string" ? `: ${errorReason}` : "";
      return { reason: "crashed", message: `Daytona says that it has ${describeState(state)}${why}.` };
    } catch (thrown) {
      if (vendorStatus(thrown) === 404) return { reason: "crashed", message: "Daytona does not know it any more." };
      // Whether it runs cannot be known now; the next round may tell.
    }
  }
  return undefined;
}
