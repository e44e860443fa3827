import type { InjectedFault } from "./history.ts";

/** Something that a server had executed, to be judged when it is lost. */
export interface Executed {
  readonly sentMs: number;
  /** Undefined: unknown. */
  readonly server: number | undefined;
}

/**
 * Whether a fault explains that something executed was lost: one that hits the server that executed it, and that was not
 * over when it was asked for. `undecided` if only a server that is still stopping may explain it.
 */
export function excuseFor(executed: Executed, faults: readonly InjectedFault[]): "excused" | "undecided" | "none" {
  const fitting = faults.filter(
    ({ server, untilMs }) =>
      (server === "all" || executed.server === undefined || server === executed.server) &&
      (untilMs === undefined || untilMs >= executed.sentMs),
  );
  if (fitting.some(({ lossy }) => lossy === true)) return "excused";
  return fitting.some(({ lossy }) => lossy === "undecided") ? "undecided" : "none";
}
