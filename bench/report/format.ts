import { meetsAim, type Aim, type Contest, type Unit } from "../result.ts";
import type { Summary } from "../statistics.ts";

/** `34.0 ms (21.6–57.2)`. */
export function formatSummary({ median, minimum, maximum, count }: Summary, unit: Unit): string {
  const spread = count > 1 ? ` (${formatNumber(minimum)}–${formatNumber(maximum)})` : "";
  return `${formatNumber(median)} ${unit}${spread}`;
}

/** `1.08× (0.97–1.21)`. */
export function formatRatio({ median, minimum, maximum, count }: Summary): string {
  const spread = count > 1 ? ` (${formatNumber(minimum)}–${formatNumber(maximum)})` : "";
  return `${formatNumber(median)}×${spread}`;
}

export function formatAim(aim: Aim | undefined): string {
  if (aim === undefined) return "–";
  return `${aim.bound === "at most" ? "≤" : "≥"} ${formatNumber(aim.ratio)}×`;
}

export function formatVerdict(contest: Contest): string {
  const met = meetsAim(contest);
  return met === undefined ? "–" : met ? "met" : "**not met**";
}

export function formatPhases(phases: Readonly<Record<string, number>>): string {
  return Object.entries(phases)
    .map(([name, ms]) => `${name} ${formatNumber(ms)}`)
    .join(", ");
}

/** `9: 4 read, 3 list, 2 write`. */
export function formatKinds(byKind: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(byKind).toSorted(([, left], [, right]) => right - left);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  return `${total}: ${sorted.map(([kind, count]) => `${count} ${kind}`).join(", ")}`;
}

/** A place on an axis: `0.05`, `10`, `2,000`. */
export function formatPlace(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 6 });
}

/** Three digits that count. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || size === 0) return String(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  if (size >= 10) return value.toFixed(1);
  return size >= 0.1 ? value.toFixed(2) : value.toPrecision(2);
}
