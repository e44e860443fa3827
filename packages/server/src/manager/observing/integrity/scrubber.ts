import { type IntegrityReport, SandboxerError, type ScrubStatus } from "@sandboxer/protocol";
import type { ScrubResult, StoreScrub } from "../../../checkpoints/scrub/store-scrub.ts";
import type { ObservingContext } from "../../room-contexts.ts";
import type { VerbOptions } from "../operations/tracked.ts";
import { integrityOf, type ScrubSettings } from "./integrity-context.ts";
import { fullPass } from "./full-pass.ts";
import { tellDamage } from "./note-damage.ts";
import { lastOf, problemsOf, reportOf } from "./report.ts";

const MEGABYTE = 1_000_000;
/** Data that was found intact this long ago is checked again. */
const STALE_MS = 24 * 3_600_000;
/**
 * After a scrub was stopped, none starts automatically for this long; less than a day, so that the next one continues
 * where it stopped.
 */
const HOLD_MS = 12 * 3_600_000;

export interface IntegrityFigures {
  readonly damagedBlocks: number;
  readonly scrubbedBytes: number;
  /** By the last full pass of any server that this one knows of. */
  readonly damagedImages: number;
  readonly lastFullPassMs: number | undefined;
}

/** Scrubs of the whole store, one at a time. A stopped scrub can be continued while the server lives. */
export class Scrubber {
  readonly #context: ObservingContext;
  readonly #settings: ScrubSettings;
  #running: { readonly stop: AbortController; readonly scrub: StoreScrub } | undefined;
  #paused: { readonly scrub: StoreScrub; readonly startedMs: number; readonly pausedMs: number } | undefined;
  #last: IntegrityReport | undefined;
  /** Whether this server is checking if it is its turn, or scrubs. */
  #isLooking = false;
  #figures: IntegrityFigures = { damagedBlocks: 0, scrubbedBytes: 0, damagedImages: 0, lastFullPassMs: undefined };

  constructor(context: ObservingContext, settings: ScrubSettings = {}) {
    this.#context = context;
    this.#settings = settings;
  }

  get figures(): IntegrityFigures {
    return this.#figures;
  }

  /** Counts the findings of a check. */
  found({ damagedBlocks, bytes }: ScrubResult): void {
    const { damagedBlocks: before, scrubbedBytes } = this.#figures;
    this.#figures = {
      ...this.#figures,
      damagedBlocks: before + damagedBlocks.length,
      scrubbedBytes: scrubbedBytes + bytes,
    };
  }

  /** Checks everything. `rateMb` null or 0: no limit; undefined: the server's setting. */
  async run(rateMb: number | null | undefined, options: VerbOptions = {}): Promise<IntegrityReport> {
    const { images } = integrityOf(this.#context);
    if (this.#context.draining) throw new SandboxerError("draining", "The server is shutting down.");
    if (this.#running !== undefined) {
      throw new SandboxerError("wrong_state", "A scrub is already running.", {
        hint: "Follow it with `sandboxer scrub --status`, or stop it with `sandboxer scrub --stop`.",
      });
    }
    const { clock, workDirectory } = this.#context.options;
    const nowMs = clock.wallMs();
    const paused = nowMs - (this.#paused?.pausedMs ?? 0) < STALE_MS ? this.#paused : undefined;
    const { scrub, startedMs } = paused ?? { scrub: images.scrub({ clock, workDirectory }), startedMs: nowMs };
    const rate = rateMb === undefined ? this.#settings.rateMb : rateMb;
    scrub.pace.bytesPerSecond = rate == null || rate === 0 ? undefined : rate * MEGABYTE;
    const stop = new AbortController();
    this.#running = { stop, scrub };
    const work = this.#work(scrub, startedMs, stop.signal, options);
    // A stopping server does not wait long for it: see `stop`.
    this.#context.untilEnded(work);
    try {
      const report = await work;
      this.#paused = undefined;
      return report;
    } catch (error) {
      this.#paused = { scrub, startedMs, pausedMs: clock.wallMs() };
      if (stop.signal.aborted && !this.#context.draining) await this.#hold();
      throw error;
    } finally {
      this.#running = undefined;
    }
  }

  /**
   * The next scrub continues where this one stopped, and none starts automatically for some time. Does nothing if none
   * is running.
   */
  stop(): void {
    const ends = this.#context.draining;
    const reason = ends
      ? new SandboxerError("draining", "The server is shutting down.")
      : new SandboxerError("wrong_state", "The scrub was stopped.", {
          hint: "The next one continues where it stopped.",
        });
    this.#running?.stop.abort(reason);
  }

  async status(): Promise<ScrubStatus> {
    const { everyMs, rateMb } = this.#settings;
    const last = await integrityOf(this.#context).records.last();
    return {
      running: this.#running !== undefined,
      paused: this.#paused !== undefined && this.#running === undefined,
      done_bytes: (this.#running ?? this.#paused)?.scrub.doneBytes ?? 0,
      every_seconds: everyMs === undefined ? null : everyMs / 1000,
      rate_mb: rateMb ?? null,
      last_full_pass_at: last?.ended_at ?? null,
      last: this.#last ?? null,
    };
  }

  /**
   * Starts a scrub automatically if no live server of the store has begun one for long enough and nobody stopped one
   * lately.
   */
  async runIfDue(): Promise<void> {
    const { everyMs } = this.#settings;
    if (everyMs === undefined || this.#context.draining || this.#running !== undefined || this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#runIfTurn(everyMs);
    } finally {
      this.#isLooking = false;
    }
  }

  async #runIfTurn(everyMs: number): Promise<void> {
    const { operations, options, durable } = this.#context;
    const { ownership } = durable;
    const { records } = integrityOf(this.#context);
    const nowMs = options.clock.wallMs();
    const begun = await records.begin({
      nowMs,
      sinceMs: nowMs - everyMs,
      scrubber: ownership.instanceId,
      isDead: async (instanceId) => await ownership.isDead(instanceId),
    });
    await this.#knowOthers();
    if (!begun) return;
    const operation = operations.open("scrub", {});
    try {
      await this.run(undefined, { operation });
      operation.finish({});
    } catch (error) {
      operation.finish({ error });
      await this.#context.reported("record of a scrub that was stopped", records.stopped());
      if (!this.#context.draining) throw error;
    }
  }

  async #work(
    scrub: StoreScrub,
    startedMs: number,
    stopped: AbortSignal,
    options: VerbOptions,
  ): Promise<IntegrityReport> {
    const { durable, snapshots, events, options: given } = this.#context;
    const signal = options.signal === undefined ? stopped : AbortSignal.any([options.signal, stopped]);
    const onProgress = options.operation?.onProgress ?? options.onProgress;
    const call = { signal, ...(onProgress === undefined ? {} : { onProgress }) };
    const { result, stored } = await fullPass({ heads: () => durable.ownership.list(), snapshots }, scrub, call);
    tellDamage(events, problemsOf(result, stored), stored);
    this.found(result);
    const report = reportOf(result, stored, { startedMs, endedMs: given.clock.wallMs(), full: true });
    await this.#remember(report);
    return report;
  }

  async #remember(report: IntegrityReport): Promise<void> {
    this.#last = report;
    const last = lastOf(report);
    this.#figures = {
      ...this.#figures,
      damagedImages: last.damaged_images,
      lastFullPassMs: Date.parse(report.ended_at),
    };
    if (!report.ok) {
      const images = report.problems.filter(({ state }) => state !== "locked").slice(0, 10);
      this.#context.options.observer.problem("the store is damaged", { images, blocks: report.damaged_block_count });
    }
    await this.#context.reported("record of a scrub", integrityOf(this.#context).records.ended(last));
  }

  /** Someone stopped the scrub, so it must not start again at the next check. */
  async #hold(): Promise<void> {
    const untilMs = this.#context.options.clock.wallMs() + Math.min(this.#settings.everyMs ?? Infinity, HOLD_MS);
    const held = integrityOf(this.#context).records.hold(untilMs);
    await this.#context.reported("record of a scrub that is not to begin again soon", held);
  }

  async #knowOthers(): Promise<void> {
    const last = await integrityOf(this.#context).records.last();
    const lastMs = last === undefined ? NaN : Date.parse(last.ended_at);
    if (last === undefined || !(lastMs > (this.#figures.lastFullPassMs ?? 0))) return;
    this.#figures = { ...this.#figures, damagedImages: last.damaged_images, lastFullPassMs: lastMs };
  }
}
