import { ratiosOf, type Summary } from "./statistics.ts";

export type Unit = "ms" | "MB/s" | "MiB" | "MB" | "%" | "/s";

/** More of these is better. */
const MORE_IS_BETTER: ReadonlySet<Unit> = new Set<Unit>(["MB/s", "/s"]);

/** The goal, as a bound on a ratio. */
export interface Aim {
  readonly bound: "at most" | "at least";
  readonly ratio: number;
}

interface Measured {
  /** How it was measured, in a few words. */
  readonly what: string;
  readonly summary: Summary;
}

/** The same work done by the server and by raw runsc, in the same rounds. */
export interface Comparison {
  readonly id: string;
  readonly title: string;
  readonly unit: Unit;
  readonly ours: Measured;
  readonly raw: Measured;
  readonly aim?: Aim;
  /** Medians in ms. */
  readonly phases?: { readonly ours: Record<string, number>; readonly raw: Record<string, number> };
}

/** The same work done by several sides, in the same rounds. The first side is judged. */
export interface Contest {
  readonly id: string;
  readonly title: string;
  readonly unit: Unit;
  readonly sides: readonly Side[];
  /** The bound on the ratio of the first side to the second. */
  readonly aim?: Aim;
}

export interface Side extends Measured {
  readonly name: string;
}

/** How something grows; both axes are logarithmic. */
export interface Curve {
  readonly id: string;
  readonly title: string;
  readonly x: string;
  readonly y: Unit;
  readonly series: readonly Series[];
  /** Notes for the reader: how it was measured, where it stopped and why. */
  readonly notes: readonly string[];
}

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Point {
  readonly x: number;
  readonly summary: Summary;
}

/** How many requests of each kind an operation makes to a store. */
export interface RequestCount {
  readonly operation: string;
  readonly store: string;
  readonly byKind: Readonly<Record<string, number>>;
}

/** A skipped measurement, and the reason. */
export interface Skipped {
  readonly what: string;
  readonly why: string;
}

/** The results of a group of measurements. */
export interface Findings {
  readonly comparisons: readonly Comparison[];
  readonly contests: readonly Contest[];
  readonly curves: readonly Curve[];
  readonly requests: readonly RequestCount[];
  readonly skipped: readonly Skipped[];
  readonly notes: readonly string[];
}

export function joinFindings(all: readonly Partial<Findings>[]): Findings {
  return {
    comparisons: all.flatMap(({ comparisons }) => comparisons ?? []),
    contests: all.flatMap(({ contests }) => contests ?? []),
    curves: all.flatMap(({ curves }) => curves ?? []),
    requests: all.flatMap(({ requests }) => requests ?? []),
    skipped: all.flatMap(({ skipped }) => skipped ?? []),
    notes: all.flatMap(({ notes }) => notes ?? []),
  };
}

/** Comparisons are contests of two. */
export function allContests({ comparisons, contests }: Findings): Contest[] {
  return [...comparisons.map(contestOf), ...contests];
}

function contestOf({ id, title, unit, ours, raw, aim }: Comparison): Contest {
  const sides = [
    { name: "sandboxer", ...ours },
    { name: "raw runsc", ...raw },
  ];
  return { id, title, unit, sides, ...(aim === undefined ? {} : { aim }) };
}

/** The ratio of the first side to another one. */
export function ratioTo({ sides }: Contest, other: Side): Summary | undefined {
  const [first] = sides;
  return first === undefined || first === other ? undefined : ratiosOf(first.summary, other.summary);
}

export function meetsAim(contest: Contest): boolean | undefined {
  const [, second] = contest.sides;
  const ratio = second === undefined ? undefined : ratioTo(contest, second)?.median;
  const { aim } = contest;
  if (aim === undefined || ratio === undefined) return undefined;
  return aim.bound === "at most" ? ratio <= aim.ratio : ratio >= aim.ratio;
}

/** Whether the first side is worse than another one by more than the noise on a shared machine. */
export function losesTo(contest: Contest, other: Side): boolean {
  const ratio = ratioTo(contest, other)?.median;
  if (ratio === undefined) return false;
  return MORE_IS_BETTER.has(contest.unit) ? ratio < 1 / NOTICEABLE : ratio > NOTICEABLE;
}

const NOTICEABLE = 1.05;
