import { cpus } from "node:os";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { Clock } from "../../../support/clock.ts";
import type { ManagerContext } from "../../context.ts";
import { Places } from "../../../support/places.ts";
import { answerWithin } from "../../../support/answer-within.ts";
import { unlessAborted } from "../../../support/unless-aborted.ts";
import type { LiveSandbox } from "../../live-sandbox.ts";

/** How many sandboxes are saved at once at first, and how many large ones at most, because they share a disk. */
const AT_ONCE = 4;
/** While CPUs are idle the store is the bottleneck, and may be given more at once. */
const MOST_AT_ONCE = 32;
const IDLE_SHARE = 0.15;
const LOOK_MS = 200;
const LARGE_BYTES = 128 * 1024 * 1024;
const ANSWER_MS = 2_000;
/** Interval of the log lines that say what the server waits for. */
const TELL_EVERY_MS = 60_000;

/** A sandbox whose state is not in the store. */
export interface UnsavedSandbox {
  readonly sandboxId: string;
  readonly reason: string;
  /** Where its state is saved on this machine; undefined: the changes since its last checkpoint are lost. */
  readonly folder: string | undefined;
}

/** Shared by the sandboxes of a draining server: time limits, slots for saves, and messages to people. */
export class Drain {
  readonly places = new Places(AT_ONCE);
  readonly #placesOfLarge = new Places(AT_ONCE);
  /** Slots for sandboxes that are only ended: a store that does not answer must not keep others from being saved. */
  readonly #placesOfOthers = new Places(MOST_AT_ONCE);
  readonly #context: ManagerContext;
  readonly #over = new AbortController();
  readonly #late = new AbortController();
  readonly #closed = new AbortController();
  readonly #endMs: number;
  /** The problem that each kept sandbox waits for, by sandbox id. */
  readonly #waiting = new Map<string, unknown>();
  #toldMs: number | undefined;

  constructor(context: ManagerContext) {
    const { drainTimeoutMs, clock } = context.options;
    this.#context = context;
    this.#endMs = context.nowMs + (drainTimeoutMs ?? 0);
    if (drainTimeoutMs === undefined) this.#over.abort();
    else void this.#passTime(drainTimeoutMs, clock);
    void this.#widen(clock);
    void this.#callOffPauses();
  }

  /** Aborted when nothing is tried again. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Aborted when the server waits for nothing any more, not even for work in progress. */
  get late(): AbortSignal {
    return this.#late.signal;
  }

  /** Waits for something unless it takes too long. */
  async unlessLate(work: Promise<unknown>): Promise<void> {
    await unlessAborted(work, this.late).catch((error: unknown) => {
      if (!this.late.aborted) throw error;
    });
  }

  /** Waits for work in progress on a sandbox. Throws if it blocks the sandbox even after the drain is late. */
  async untilFree(sandbox: LiveSandbox): Promise<void> {
    const isFree = sandbox.queue.run(async () => true);
    await this.unlessLate(isFree);
    // Late work is called off, and needs a moment to end.
    if ((await answerWithin(this.#context.options.clock, ANSWER_MS, isFree)) === undefined)
      throw new SandboxerError("timeout", "Work in progress on the sandbox did not end.");
  }

  /** Resolves when the store does not answer: this server cannot renew its lease, or the drain is late. */
  async untilSilent(over: AbortSignal): Promise<void> {
    const { options, durable } = this.#context;
    while (!over.aborted && !durable.ownership.instances.frozen && !this.late.aborted)
      await options.clock.sleep(LOOK_MS, over).catch(() => {});
  }

  /** A pause in progress would wait for the store without a copy on this machine. */
  async #callOffPauses(): Promise<void> {
    await this.untilSilent(this.#closed.signal);
    this.#context.storeSilent.abort(new SandboxerError("store_unavailable", "The store does not answer."));
  }

  /** All sandboxes have been saved or ended. */
  close(): void {
    this.#closed.abort();
    this.#over.abort();
  }

  async #widen(clock: Clock): Promise<void> {
    const idle = new IdleProcessors();
    for (let count = AT_ONCE; count < MOST_AT_ONCE && !this.#closed.signal.aborted;) {
      await clock.sleep(LOOK_MS, this.#closed.signal).catch(() => {});
      if (idle.share() < IDLE_SHARE || !this.places.crowded) continue;
      count += 1;
      this.places.add(1);
    }
  }

  async #passTime(ms: number, clock: Clock): Promise<void> {
    await clock.sleep(ms, this.over).catch(() => {});
    // Work that ended in time is not late.
    if (!this.over.aborted) this.#late.abort(new SandboxerError("store_unavailable", "The store does not answer."));
    this.#over.abort();
  }

  /** The slot for saving a sandbox. A sandbox that does not report its size in time counts as large. */
  async placesFor(sandbox: LiveSandbox): Promise<Places> {
    if (!sandbox.durable || sandbox.state !== "running") return this.#placesOfOthers;
    const { clock } = this.#context.options;
    const used = await answerWithin(clock, ANSWER_MS, sandbox.handle.stats()).catch(() => undefined);
    return used !== undefined && used.memoryBytes + used.diskBytes < LARGE_BYTES ? this.places : this.#placesOfLarge;
  }

  /** Logs what the server waits for: once immediately, then rarely. */
  waitsFor(sandboxId: string, error: unknown): void {
    this.#waiting.set(sandboxId, error);
    const { nowMs, options } = this.#context;
    if (this.over.aborted || nowMs - (this.#toldMs ?? -Infinity) < TELL_EVERY_MS) return;
    this.#toldMs = nowMs;
    options.observer.problem("sandboxes are kept until the store accepts them; the server stops then", {
      waiting: this.#waiting.size,
      givesUpInSeconds: Math.round((this.#endMs - nowMs) / 1000),
      error: asSandboxerError(error),
    });
  }

  waitsNoMore(sandboxId: string): void {
    this.#waiting.delete(sandboxId);
  }
}

/** The share of this machine's CPU time that was idle since the last call, from 0 to 1. */
class IdleProcessors {
  #last = timesOf();

  share(): number {
    const [before, now] = [this.#last, timesOf()];
    this.#last = now;
    const all = now.all - before.all;
    return all === 0 ? 0 : (now.idle - before.idle) / all;
  }
}

function timesOf(): { readonly idle: number; readonly all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.idle + times.user + times.sys + times.nice + times.irq;
  }
  return { idle, all };
}
