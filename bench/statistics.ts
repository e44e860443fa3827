export interface Summary {
  readonly median: number;
  readonly minimum: number;
  readonly maximum: number;
  readonly count: number;
  /** In the order of the rounds. */
  readonly values: readonly number[];
}

export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((left, right) => left - right);
  return {
    median: quantile(sorted, 0.5),
    minimum: sorted[0] ?? Number.NaN,
    maximum: sorted.at(-1) ?? Number.NaN,
    count: sorted.length,
    values,
  };
}

/**
 * The ratio to the other side, with its spread. Both sides run in the same rounds, so the ratio of each round counts;
 * if the rounds do not match, the medians do, and the spread is what the extremes allow.
 */
export function ratiosOf(one: Summary, other: Summary): Summary {
  if (one.count === other.count) return summarize(one.values.map((value, at) => value / (other.values[at] ?? NaN)));
  const median = one.median / other.median;
  return {
    median,
    minimum: one.minimum / other.maximum,
    maximum: one.maximum / other.minimum,
    count: Math.min(one.count, other.count),
    values: [median],
  };
}

/** The median of each phase over several operations. */
export function summarizePhases(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = new Set(records.flatMap((record) => Object.keys(record)));
  return Object.fromEntries(
    [...names].map((name) => {
      const values = records.map((record) => record[name]).filter((value) => value !== undefined);
      return [name, summarize(values).median];
    }),
  );
}

/** A quantile of sorted values, interpolated. */
export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const lower = sorted[Math.floor(at)] ?? Number.NaN;
  const upper = sorted[Math.ceil(at)] ?? Number.NaN;
  return lower + (upper - lower) * (at - Math.floor(at));
}
