import type { Summary } from "./statistics.ts";

export type Unit = "ms" | "MB/s" | "MiB";

/** What the issue asks for, as a bound on `ours / raw`. */
export interface Aim {
  readonly bound: "at most" | "at least";
  readonly ratio: number;
}

/** The same work done by the server and by raw runsc, in the same rounds. */
export interface Comparison {
  readonly id: string;
  readonly title: string;
  readonly unit: Unit;
  /** How each side was measured, in a few words. */
  readonly ours: { readonly what: string; readonly summary: Summary };
  readonly raw: { readonly what: string; readonly summary: Summary };
  readonly aim?: Aim;
  /** Medians in ms. */
  readonly phases?: { readonly ours: Record<string, number>; readonly raw: Record<string, number> };
}

export function ratioOf({ ours, raw }: Comparison): number {
  return ours.summary.median / raw.summary.median;
}

export function meetsAim(comparison: Comparison): boolean | undefined {
  const { aim } = comparison;
  if (aim === undefined) return undefined;
  const ratio = ratioOf(comparison);
  return aim.bound === "at most" ? ratio <= aim.ratio : ratio >= aim.ratio;
}
