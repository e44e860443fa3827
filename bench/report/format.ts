import { meetsAim, ratioOf, type Comparison, type Unit } from "../result.ts";
import type { Summary } from "../statistics.ts";

export function formatSummary(summary: Summary, unit: Unit): string {
  const { median, minimum, maximum, count } = summary;
  return `${number(median)} ${unit} (${number(minimum)}–${number(maximum)}, n=${count})`;
}

/** `1.08×`, or `44× faster` where a plain ratio would be hard to read. */
export function formatRatio(comparison: Comparison): string {
  const ratio = ratioOf(comparison);
  return comparison.unit === "ms" && ratio < 0.2 ? `${number(1 / ratio)}× faster` : `${ratio.toFixed(2)}×`;
}

export function formatAim({ aim }: Comparison): string {
  if (aim === undefined) return "–";
  if (aim.ratio < 0.2) return `${Math.round(1 / aim.ratio)}× faster`;
  return `${aim.bound === "at most" ? "≤" : "≥"} ${aim.ratio}×`;
}

export function formatVerdict(comparison: Comparison): string {
  const met = meetsAim(comparison);
  return met === undefined ? "–" : met ? "met" : "not met";
}

export function formatPhases(phases: Readonly<Record<string, number>>): string {
  return Object.entries(phases)
    .map(([name, ms]) => `${name} ${number(ms)}`)
    .join(", ");
}

/** `9: 4 read, 3 list, 2 write`. */
export function formatKinds(byKind: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(byKind).toSorted(([, left], [, right]) => right - left);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  return `${total}: ${sorted.map(([kind, count]) => `${count} ${kind}`).join(", ")}`;
}

function number(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
