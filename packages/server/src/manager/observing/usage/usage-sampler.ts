import type { SandboxStats } from "../../../backends/backend.ts";
import { answerWithin } from "../../../support/answer-within.ts";
import type { Clock } from "../../../support/clock.ts";
import { mapAtOnce } from "../../../support/map-at-once.ts";
import { UsageSeries } from "./usage-series.ts";

/** A sandbox that may be asked now. */
export interface UsageSource {
  readonly sandboxId: string;
  /** To ask costs next to nothing; else it goes over a network, to an engine or a provider. */
  readonly near: boolean;
  stats(): Promise<SandboxStats>;
}

export interface SamplerOptions {
  readonly clock: Clock;
  /** Those that run and are not held still. */
  readonly sources: () => readonly UsageSource[];
  /** Those that are here at all: of others nothing is remembered. */
  readonly isHere: (sandboxId: string) => boolean;
}

/** While somebody looks, and for so long after they did. */
const INTEREST_MS = 60_000;
const WATCHED_MS = 2_000;
/** In a list that somebody looks at, for what is far. */
const FAR_MS = 10_000;
/** While nobody looks, for what is near; what is far is left alone. */
const UNWATCHED_MS = 30_000;
const AT_ONCE = 8;
/** An answer that takes longer holds nobody else up. It is not asked for again before it has come. */
const PATIENCE_MS = 1_000;

interface Sampled {
  readonly series: UsageSeries;
  askedMs: number;
  watchedMs: number;
  waiting: boolean;
}

/** Asks the sandboxes of this server what they use, as often as somebody wants to know. */
export class UsageSampler {
  readonly #options: SamplerOptions;
  readonly #sampled = new Map<string, Sampled>();
  readonly #stop = new AbortController();
  #listedMs = -Infinity;
  #nap = new AbortController();

  constructor(options: SamplerOptions) {
    this.#options = options;
    void this.#run();
  }

  stop(): void {
    this.#stop.abort();
    this.#nap.abort();
  }

  /** Somebody looks at all of them. */
  all(): ReadonlyMap<string, { readonly series: UsageSeries }> {
    const wasQuiet = this.#isQuiet();
    this.#listedMs = this.#options.clock.monotonicMs();
    if (wasQuiet) this.#nap.abort();
    return this.#sampled;
  }

  /** Somebody looks at this one. */
  of(sandboxId: string): UsageSeries {
    const wasQuiet = this.#isQuiet();
    const sampled = this.#entry(sandboxId);
    sampled.watchedMs = this.#options.clock.monotonicMs();
    if (wasQuiet) this.#nap.abort();
    return sampled.series;
  }

  #entry(sandboxId: string): Sampled {
    let sampled = this.#sampled.get(sandboxId);
    if (sampled === undefined) {
      sampled = { series: new UsageSeries(), askedMs: -Infinity, watchedMs: -Infinity, waiting: false };
      this.#sampled.set(sandboxId, sampled);
    }
    return sampled;
  }

  /** Whether nobody has looked at anything for a while. */
  #isQuiet(): boolean {
    const sinceMs = this.#options.clock.monotonicMs() - INTEREST_MS;
    return this.#listedMs < sinceMs && [...this.#sampled.values()].every(({ watchedMs }) => watchedMs < sinceMs);
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      await this.#round();
      this.#nap = new AbortController();
      if (this.#stop.signal.aborted) return;
      // Whoever looks after a quiet time wakes it.
      await clock.sleep(this.#isQuiet() ? UNWATCHED_MS : WATCHED_MS, this.#nap.signal).catch(() => {});
    }
  }

  async #round(): Promise<void> {
    for (const sandboxId of this.#sampled.keys()) if (!this.#options.isHere(sandboxId)) this.#sampled.delete(sandboxId);
    const due = this.#options.sources().filter((source) => this.#isDue(source));
    await mapAtOnce(due, AT_ONCE, (source) => this.#sample(source));
  }

  #isDue({ sandboxId, near }: UsageSource): boolean {
    const { askedMs, watchedMs, waiting } = this.#entry(sandboxId);
    if (waiting) return false;
    const nowMs = this.#options.clock.monotonicMs();
    const listed = nowMs - this.#listedMs <= INTEREST_MS;
    const watched = nowMs - watchedMs <= INTEREST_MS;
    if (!near && !watched && !listed) return false;
    const everyMs = watched || (listed && near) ? WATCHED_MS : listed ? FAR_MS : UNWATCHED_MS;
    // A timer may be a little early.
    return nowMs - askedMs >= everyMs * 0.9;
  }

  /** Resolves when it has answered, or has had its time. */
  async #sample(source: UsageSource): Promise<void> {
    const { clock } = this.#options;
    const sampled = this.#entry(source.sandboxId);
    sampled.askedMs = clock.monotonicMs();
    sampled.waiting = true;
    const answer = source
      .stats()
      .then(
        (used) => sampled.series.add({ ...used, wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() }),
        // It ends, or its provider is away: a point is missing.
        () => {},
      )
      .finally(() => (sampled.waiting = false));
    await answerWithin(clock, PATIENCE_MS, answer);
  }
}
