import type { LineageItem } from "./forest.ts";

/** The two sides of a comparison: a snapshot, and another one or a sandbox as it is now. */
export interface Comparison {
  readonly from: string;
  /** A snapshot's id, or `sandbox:ID`. */
  readonly to: string;
}

/** Older first; a sandbox is always the newer side. Undefined for two sandboxes: neither is a snapshot. */
export function comparisonOf(a: LineageItem, b: LineageItem): Comparison | undefined {
  if (a.kind === "sandbox" && b.kind === "sandbox") return undefined;
  if (a.kind === "sandbox") return { from: b.record.id, to: a.key };
  if (b.kind === "sandbox") return { from: a.record.id, to: b.key };
  const [older, newer] = a.record.createdAt <= b.record.createdAt ? [a, b] : [b, a];
  return { from: older.record.id, to: newer.record.id };
}
