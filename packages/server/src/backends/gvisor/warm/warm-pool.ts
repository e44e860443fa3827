import type { CallOptions } from "../../../support/call-options.ts";
import type { Clock } from "../../../support/clock.ts";
import type { WarmFigures } from "../../backend.ts";
import { allot } from "./allot.ts";
import { WarmGroup, type Recipe, type WarmSandbox } from "./warm-group.ts";

/** `busy`: nothing is made now. `short`: nor is anything kept. */
export type Room = "free" | "busy" | "short";

export interface WarmPoolOptions {
  /** How many are kept at most, of all keys together. */
  readonly max: number;
  readonly room: () => Room;
  readonly clock: Clock;
  /** What nobody waits for has gone wrong. */
  readonly onProblem: (message: string, error: unknown) => void;
}

/** As many are kept ready as were asked for in this time; so after this time without a request there are none. */
const WINDOW_MS = 60_000;
/** Whoever has just got a sandbox begins to work in it: what they start first is not to be slowed down. */
const SETTLE_MS = 150;
/** An engine that is called off in the middle of its start takes longer to clear away than one that has started. */
const FINISH_MS = 2_000;
/** How long one who has asked waits for one that is being made; then a start of their own is the surer way. */
const WAIT_MS = 10_000;
/** How often it is looked at whether something is too much, while there is anything. */
const LOOK_MS = 1_000;

/**
 * Sandboxes that are made before somebody asks for them. Each one goes to whoever asks first and never comes back. One is
 * made at a time; while nobody asks for any, there are none, and nothing runs.
 */
export class WarmPool<Sandbox extends WarmSandbox> {
  readonly #options: WarmPoolOptions;
  readonly #groups = new Map<string, WarmGroup<Sandbox>>();
  readonly #stop = new AbortController();
  /** Of what is being made. */
  readonly #callOff = new AbortController();
  readonly #ends = new Set<Promise<void>>();
  readonly #counts = { handedOut: 0, missed: 0, failed: 0, expired: 0 };
  #work: Promise<void> | undefined;
  #nap = new AbortController();

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  get figures(): WarmFigures {
    const groups = [...this.#groups.values()];
    return {
      max: this.#options.max,
      ready: groups.reduce((sum, { ready }) => sum + ready.length, 0),
      preparing: groups.filter(({ making }) => making !== undefined).length,
      ...this.#counts,
    };
  }

  /** How many are there or on their way. */
  get stock(): number {
    return [...this.#groups.values()].reduce((sum, { stock }) => sum + stock, 0);
  }

  /**
   * One that is the caller's from now on, once `adopt` has made it so; undefined: none is ready, or what was is of no
   * use. Either way more will be.
   */
  async take(
    recipe: Recipe<Sandbox>,
    adopt: (sandbox: Sandbox) => Promise<void>,
    { signal }: CallOptions = {},
  ): Promise<Sandbox | undefined> {
    if (this.#stop.signal.aborted || this.#options.max === 0) return undefined;
    const group = this.#groups.get(recipe.key) ?? new WarmGroup(recipe);
    this.#groups.set(recipe.key, group);
    group.recipe = recipe;
    group.asked(this.#nowMs);
    const taking = group.take();
    this.#wake();
    const taken = await this.#inTime(taking, signal);
    const adopted = taken !== undefined && (await this.#isAdopted(taken, adopt, signal)) ? taken : undefined;
    if (adopted === undefined) this.#counts.missed += 1;
    else this.#counts.handedOut += 1;
    return adopted;
  }

  /** Ends what is ready beyond so many, those first that were asked for longest ago, and waits until it has ended. */
  async keepAtMost(places: number): Promise<void> {
    const before = this.stock;
    const groups = [...this.#groups.values()].toSorted((left, right) => left.lastAskedMs - right.lastAskedMs);
    for (const group of groups) {
      const tooMany = Math.max(0, this.stock - Math.max(0, places));
      if (tooMany > 0) this.#discard(group, Math.max(0, group.ready.length - tooMany));
    }
    if (this.stock < before) await Promise.all(this.#ends);
  }

  /** Throws away what was made by these recipes, such as those of a state that is removed. */
  forget(isMeant: (key: string) => boolean): void {
    for (const [key, group] of this.#groups) {
      if (!isMeant(key)) continue;
      this.#groups.delete(key);
      this.#discard(group, 0);
    }
  }

  /** Ends all of them, and makes no more. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#nap.abort();
    for (const { making } of this.#groups.values()) making?.hurry.abort();
    this.forget(() => true);
    const over = new AbortController();
    const late = this.#options.clock.sleep(FINISH_MS, over.signal).then(
      () => this.#callOff.abort(),
      () => {},
    );
    await this.#work;
    over.abort();
    await late;
    await Promise.all(this.#ends);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  /** Who goes away, or has waited long enough, leaves it to nobody: it was to be theirs. */
  async #inTime(taking: Promise<Sandbox | undefined>, signal: AbortSignal | undefined): Promise<Sandbox | undefined> {
    const over = new AbortController();
    const signals = [over.signal, ...(signal === undefined ? [] : [signal])];
    const late = this.#options.clock.sleep(WAIT_MS, AbortSignal.any(signals)).then(
      () => "late" as const,
      () => "late" as const,
    );
    const first = await Promise.race([taking, late]);
    over.abort();
    if (first !== "late") return first;
    void taking.then((sandbox) => sandbox !== undefined && this.#end(sandbox));
    return undefined;
  }

  async #isAdopted(
    sandbox: Sandbox,
    adopt: (sandbox: Sandbox) => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    try {
      await adopt(sandbox);
      return true;
    } catch (error) {
      // Who has gone away has not been failed. What was to be theirs is nobody else's all the same.
      if (signal?.aborted !== true) this.#problem(error);
      this.#end(sandbox);
      return false;
    }
  }

  #wake(): void {
    this.#work ??= this.#run();
    this.#nap.abort();
  }

  /** Ends by itself when nothing was asked for lately. */
  async #run(): Promise<void> {
    for (;;) {
      await this.#sleep(SETTLE_MS, this.#stop.signal);
      const room = this.#options.room();
      this.#tidy(room);
      if (this.#groups.size === 0) {
        this.#work = undefined;
        return;
      }
      const group = room === "free" ? this.#neediest() : undefined;
      this.#nap = new AbortController();
      if (group === undefined) await this.#sleep(LOOK_MS, this.#nap.signal);
      else await this.#fill(group);
    }
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#options.clock.sleep(ms, signal).catch(() => {});
  }

  /** Forgets what was asked for long ago, and ends what is then too much. */
  #tidy(room: Room): void {
    const sinceMs = this.#nowMs - WINDOW_MS;
    for (const [key, group] of this.#groups) {
      if (group.isForgotten(sinceMs) && group.making === undefined) {
        this.#groups.delete(key);
        this.#discard(group, 0);
      }
    }
    for (const [group, count] of this.#allotted(room === "short" ? 0 : this.#options.max)) this.#discard(group, count);
  }

  /** The keys that were asked for last come first. */
  #allotted(places: number): Map<WarmGroup<Sandbox>, number> {
    const groups = [...this.#groups.values()].toSorted((left, right) => right.lastAskedMs - left.lastAskedMs);
    const given = allot(
      groups.map(({ wanted }) => wanted),
      places,
    );
    return new Map(groups.map((group, index) => [group, given[index]!]));
  }

  #neediest(): WarmGroup<Sandbox> | undefined {
    const wanting = [...this.#allotted(this.#options.max)].filter(
      ([group, count]) => group.stock < count && group.mayMake(this.#nowMs),
    );
    return wanting.toSorted(([left], [right]) => left.stock - right.stock)[0]?.[0];
  }

  async #fill(group: WarmGroup<Sandbox>): Promise<void> {
    const hurry = new AbortController();
    const made = group.recipe.make({ signal: this.#callOff.signal, hurry: hurry.signal });
    const making = { made, hurry, claimed: false };
    group.making = making;
    try {
      const sandbox = await made;
      // Whoever waits for it has it.
      if (making.claimed) return;
      if (this.#groups.get(group.recipe.key) === group) this.#keep(group, sandbox);
      else this.#end(sandbox);
    } catch (error) {
      group.failed(this.#nowMs);
      if (!this.#stop.signal.aborted) this.#problem(error);
    } finally {
      group.making = undefined;
    }
  }

  #keep(group: WarmGroup<Sandbox>, sandbox: Sandbox): void {
    group.ready.push(sandbox);
    void sandbox.ended.then(() => {
      const place = group.ready.indexOf(sandbox);
      if (place < 0) return;
      group.ready.splice(place, 1);
      group.failed(this.#nowMs);
      this.#problem(new Error("A pooled sandbox ended before it was used."));
    });
  }

  #discard({ ready }: WarmGroup<Sandbox>, keep: number): void {
    for (const sandbox of ready.splice(keep)) {
      this.#counts.expired += 1;
      this.#end(sandbox);
    }
  }

  #end(sandbox: Sandbox): void {
    const end = sandbox.destroy().catch((error: unknown) => this.#problem(error));
    this.#ends.add(end);
    void end.finally(() => this.#ends.delete(end));
  }

  #problem(error: unknown): void {
    this.#counts.failed += 1;
    this.#options.onProblem("a sandbox of the warm pool is unusable", error);
  }
}
