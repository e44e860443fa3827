import type { Series } from "../result.ts";
import { summarize } from "../statistics.ts";

/** Collects measurements for each x, by series. */
export class Points {
  readonly #values = new Map<string, Map<number, number[]>>();

  add(series: string, x: number, ...values: readonly number[]): void {
    const points = this.#values.get(series) ?? new Map<number, number[]>();
    this.#values.set(series, points);
    points.set(x, [...(points.get(x) ?? []), ...values]);
  }

  /** In the order of arrival; only series with this prefix. */
  series(...prefixes: readonly string[]): Series[] {
    return [...this.#values]
      .filter(([name]) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)))
      .map(([name, points]) => ({
        name,
        points: [...points].map(([x, values]) => ({ x, summary: summarize(values) })),
      }));
  }
}
