import { commonLength, firstRepeated, shown } from "./numbers.ts";

interface Value {
  readonly log: readonly number[];
  /** Steps without an answer, which may have been executed before the capture. */
  readonly unknown: ReadonlySet<number>;
  /** True once a copy was seen: from then on every copy holds the same. */
  readonly isExact: boolean;
}

/** The content of each acknowledged snapshot. */
export class SnapshotValues {
  readonly #values = new Map<string, Value>();

  add(snapshot: string, log: readonly number[], unknown: ReadonlySet<number>): void {
    this.#values.set(snapshot, { log, unknown, isExact: unknown.size === 0 });
  }

  /** The problem of a copy; undefined if there is none. */
  differenceOf(snapshot: string, log: readonly number[]): string | undefined {
    const value = this.#values.get(snapshot);
    if (value === undefined) return undefined;
    const added = log.slice(value.log.length);
    const isWhole = commonLength(value.log, log) === value.log.length && firstRepeated(log) === undefined;
    if (!isWhole || !added.every((number) => !value.isExact && value.unknown.has(number))) {
      return `Snapshot ${snapshot} holds ${shown(value.log)}, and a copy of it ${shown(log)}.`;
    }
    this.#values.set(snapshot, { ...value, log, isExact: true });
    return undefined;
  }
}
