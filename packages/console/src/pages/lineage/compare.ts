import type { LineageItem } from "./forest.ts";

/** The two sides of a comparison: a snapshot's id, or `sandbox:ID` for a sandbox as it is now. */
export interface Comparison {
  readonly from: string;
  readonly to: string;
}

/** Older first; a sandbox is the newer side of a snapshot. */
export function inOrder(a: LineageItem, b: LineageItem): readonly [from: LineageItem, to: LineageItem] {
  if (a.kind !== b.kind) return a.kind === "sandbox" ? [b, a] : [a, b];
  return a.record.createdAt <= b.record.createdAt ? [a, b] : [b, a];
}

export function comparisonOf(from: LineageItem, to: LineageItem): Comparison {
  const side = (item: LineageItem): string => (item.kind === "sandbox" ? item.key : item.record.id);
  return { from: side(from), to: side(to) };
}
