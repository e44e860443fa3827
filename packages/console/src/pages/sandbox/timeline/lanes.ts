import type { MarkKind } from "./marks.ts";

const TITLES: Readonly<Record<MarkKind, string>> = {
  execution: "Executions",
  operation: "Operations",
  saved: "Checkpoints and snapshots",
  place: "Handoffs, freezes, restores",
  other: "Other",
};

/** From top to bottom. */
export const LANES: readonly MarkKind[] = ["execution", "operation", "saved", "place", "other"];

export function laneTitle(kind: MarkKind): string {
  return TITLES[kind];
}
