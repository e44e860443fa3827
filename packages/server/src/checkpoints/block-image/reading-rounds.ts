/** A job, and the packs that it needs. */
export interface NeedsPacks {
  readonly packs: ReadonlySet<number>;
}

export interface Round<Job> {
  readonly jobs: readonly Job[];
  readonly packs: ReadonlySet<number>;
}

/**
 * Divides jobs into rounds whose packs fit into the available room, or whose jobs all need the packs of one of them. If
 * all packs fit at once, there is one round in the given order; otherwise jobs with the same packs are grouped, largest
 * first.
 */
export function inRounds<Job extends NeedsPacks>(
  jobs: readonly Job[],
  sizeOf: (pack: number) => number,
  roomBytes: number,
): readonly Round<Job>[] {
  const bytesOf = (packs: ReadonlySet<number>): number => packs.values().reduce((sum, pack) => sum + sizeOf(pack), 0);
  const all = new Set<number>();
  for (const packs of new Set(jobs.map((job) => job.packs))) for (const pack of packs) all.add(pack);
  if (bytesOf(all) <= roomBytes) return [{ jobs, packs: all }];
  const bySize = (packs: ReadonlySet<number>): readonly number[] =>
    [...packs].toSorted((a, b) => sizeOf(b) - sizeOf(a) || a - b);
  const ordered = jobs.map((job) => ({ job, order: bySize(job.packs) })).toSorted((a, b) => compare(a.order, b.order));
  const rounds: { jobs: Job[]; packs: Set<number> }[] = [];
  for (const { job } of ordered) {
    const last = rounds.at(-1);
    const together = last?.packs.union(job.packs);
    if (last !== undefined && together !== undefined && hasRoom(last.packs, together)) {
      last.jobs.push(job);
      last.packs = together;
    } else rounds.push({ jobs: [job], packs: new Set(job.packs) });
  }
  return rounds;

  function hasRoom(before: ReadonlySet<number>, together: ReadonlySet<number>): boolean {
    return together.size === before.size || bytesOf(together) <= roomBytes;
  }
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
