import type { SandboxStats } from "../../../backends/backend.ts";

/**
 * The usage of a sandbox at one moment. CPU is a counter, so that a rate is right even if points in between were
 * dropped.
 */
export interface UsagePoint extends SandboxStats {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** All points are kept for this long, then one per interval, then none. */
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

  /** Only the newest points, without copying the others. */
  last(count: number): readonly UsagePoint[] {
    const missing = count - this.#fine.length;
    return missing <= 0 ? this.#fine.slice(-count) : [...this.#coarse.slice(-missing), ...this.#fine];
  }
}

/** CPUs in use between two points. Undefined if unknown: the counter restarts after a restore. */
export function cpusBetween(before: UsagePoint | undefined, { cpuMs, monotonicMs }: UsagePoint): number | undefined {
  if (before === undefined || monotonicMs <= before.monotonicMs || cpuMs < before.cpuMs) return undefined;
  return (cpuMs - before.cpuMs) / (monotonicMs - before.monotonicMs);
}
