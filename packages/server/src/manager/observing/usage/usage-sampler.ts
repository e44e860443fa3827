import type { SandboxStats } from "../../../backends/backend.ts";
import { answerWithin } from "../../../support/answer-within.ts";
import type { Clock } from "../../../support/clock.ts";
import { mapAtOnce } from "../../../support/map-at-once.ts";
import { UsageSeries } from "./usage-series.ts";

/** A sandbox that may be sampled now. */
export interface UsageSource {
  readonly sandboxId: string;
  /** Whether sampling is cheap; otherwise it goes over a network, to an engine or a provider. */
  readonly near: boolean;
  stats(): Promise<SandboxStats>;
}

export interface SamplerOptions {
  readonly clock: Clock;
  /** Sandboxes that run and are not frozen. */
  readonly sources: () => readonly UsageSource[];
  /** Sandboxes that are on this server at all; samples of others are dropped. */
  readonly isHere: (sandboxId: string) => boolean;
}

/** While someone looks, and for this long after. */
const INTEREST_MS = 60_000;
const WATCHED_MS = 2_000;
/** For remote sandboxes in a list that someone looks at. */
const FAR_MS = 10_000;
/** For local sandboxes while nobody looks; remote ones are not sampled then. */
const UNWATCHED_MS = 30_000;
const AT_ONCE = 8;
/** A slower answer does not delay other samples. The sandbox is not sampled again before it has answered. */
const PATIENCE_MS = 1_000;

interface Sampled {
  readonly series: UsageSeries;
  askedMs: number;
  watchedMs: number;
  waiting: boolean;
}

/** Samples the resource usage of this server's sandboxes, as often as someone wants to know. */
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

  /** Someone looks at all sandboxes. */
  all(): ReadonlyMap<string, { readonly series: UsageSeries }> {
    const wasQuiet = this.#isQuiet();
    this.#listedMs = this.#options.clock.monotonicMs();
    if (wasQuiet) this.#nap.abort();
    return this.#sampled;
  }

  /** Someone looks at this sandbox. */
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
      // The first look after a quiet time starts it again.
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

  /** Resolves when the sandbox answered, or its time limit passed. */
  async #sample(source: UsageSource): Promise<void> {
    const { clock } = this.#options;
    const sampled = this.#entry(source.sandboxId);
    sampled.askedMs = clock.monotonicMs();
    sampled.waiting = true;
    const answer = source
      .stats()
      .then(
        (used) => sampled.series.add({ ...used, wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() }),
        // The sandbox ends, or its provider is unavailable: the point is missing.
        () => {},
      )
      .finally(() => (sampled.waiting = false));
    await answerWithin(clock, PATIENCE_MS, answer);
  }
}
