import type { SandboxStats } from "../../../backends/backend.ts";

/** What a sandbox used at a moment. CPU is a count, so that a rate is right however many points between two were dropped. */
export interface UsagePoint extends SandboxStats {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** All points are kept for that long, then one in so many milliseconds, then none. */
const FINE_MS = 5 * 60_000;
const COARSE_STEP_MS = 15_000;
const KEEP_MS = 30 * 60_000;

/** The newest points of one sandbox, oldest first, thinning out with age. Never more than a few hundred. */
export class UsageSeries {
  readonly #coarse: UsagePoint[] = [];
  readonly #fine: UsagePoint[] = [];

  add(point: UsagePoint): void {
    const { monotonicMs: nowMs } = point;
    this.#fine.push(point);
    for (let oldest = this.#fine[0]; oldest !== undefined; oldest = this.#fine[0]) {
      if (nowMs - oldest.monotonicMs <= FINE_MS) break;
      this.#fine.shift();
      const before = this.#coarse.at(-1)?.monotonicMs ?? -Infinity;
      if (oldest.monotonicMs - before >= COARSE_STEP_MS) this.#coarse.push(oldest);
    }
    while (this.#coarse[0] !== undefined && nowMs - this.#coarse[0].monotonicMs > KEEP_MS) this.#coarse.shift();
  }

  get points(): readonly UsagePoint[] {
    return [...this.#coarse, ...this.#fine];
  }

  /** The newest ones alone, without a copy of the others. */
  last(count: number): readonly UsagePoint[] {
    const missing = count - this.#fine.length;
    return missing <= 0 ? this.#fine.slice(-count) : [...this.#coarse.slice(-missing), ...this.#fine];
  }
}

/** Processors in use between two points. Undefined when it cannot be said: the count began anew in another life. */
export function cpusBetween(before: UsagePoint | undefined, { cpuMs, monotonicMs }: UsagePoint): number | undefined {
  if (before === undefined || monotonicMs <= before.monotonicMs || cpuMs < before.cpuMs) return undefined;
  return (cpuMs - before.cpuMs) / (monotonicMs - before.monotonicMs);
}
