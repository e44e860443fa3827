import type { WarmOptions } from "../../../../src/backends/gvisor/warm/warm-sandboxes.ts";
import { systemClock } from "../../../../src/support/clock.ts";

/** On any machine, however busy it is with other tests. */
export function warmOptions(max = 2): WarmOptions {
  return { max, maxSandboxes: 100, clock: systemClock, onProblem: () => {}, room: () => "free" };
}
