export interface Summary {
  readonly median: number;
  readonly minimum: number;
  readonly maximum: number;
  readonly count: number;
}

export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((left, right) => left - right);
  return {
    median: median(sorted),
    minimum: sorted[0] ?? Number.NaN,
    maximum: sorted.at(-1) ?? Number.NaN,
    count: sorted.length,
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

function median(sorted: readonly number[]): number {
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
