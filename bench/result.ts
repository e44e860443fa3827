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

/** How many requests of each kind an operation makes to a store. */
export interface RequestCount {
  readonly operation: string;
  readonly store: string;
  readonly byKind: Readonly<Record<string, number>>;
}

/** What a run has found out, by the section of the page that it goes to. */
export interface Findings {
  readonly comparisons: readonly Comparison[];
  readonly handoffs: readonly Comparison[];
  readonly requests: readonly RequestCount[];
}

export const NO_FINDINGS: Findings = { comparisons: [], handoffs: [], requests: [] };

export function mergeFindings(before: Findings, more: Partial<Findings>): Findings {
  return {
    comparisons: [...before.comparisons, ...(more.comparisons ?? [])],
    handoffs: [...before.handoffs, ...(more.handoffs ?? [])],
    requests: [...before.requests, ...(more.requests ?? [])],
  };
}
