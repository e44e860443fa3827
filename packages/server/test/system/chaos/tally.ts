/** How often what came of which call. */
export class Tally {
  readonly #counts = new Map<string, Map<string, number>>();

  add(what: string, outcome: string): void {
    const outcomes = this.#counts.get(what) ?? new Map<string, number>();
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    this.#counts.set(what, outcomes);
  }

  lines(): string[] {
    return [...this.#counts].toSorted().map(([what, outcomes]) => {
      const most = [...outcomes].toSorted(([, one], [, other]) => other - one);
      return `${what}: ${most.map(([outcome, count]) => `${count} ${outcome}`).join(", ")}`;
    });
  }
}
