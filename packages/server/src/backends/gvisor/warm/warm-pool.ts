import type { CallOptions } from "../../../support/call-options.ts";
import type { Clock } from "../../../support/clock.ts";
import type { WarmFigures } from "../../backend.ts";
import { allot } from "./allot.ts";
import { WarmGroup, type Recipe, type WarmSandbox } from "./warm-group.ts";

/** `busy`: nothing is created now. `short`: nor is anything kept. */
export type Room = "free" | "busy" | "short";

export interface WarmPoolOptions {
  /** The maximum number, of all keys together. */
  readonly max: number;
  readonly room: () => Room;
  readonly clock: Clock;
  /** Background work failed. */
  readonly onProblem: (message: string, error: unknown) => void;
}

/** As many are kept ready as were requested in this time; so after this time without a request there are none. */
const WINDOW_MS = 60_000;
/** The caller of a new sandbox begins to work in it: its first steps must not be slowed down. */
const SETTLE_MS = 150;
/** Aborting an engine in the middle of its start takes longer to clean up than letting it start. */
const FINISH_MS = 2_000;
/** How long a caller waits for one that is being created; after that its own start is safer. */
const WAIT_MS = 10_000;
/** How often the pool is checked for excess, while it is not empty. */
const LOOK_MS = 1_000;

/**
 * Sandboxes that are created before they are requested. Each one goes to the first caller and never comes back. One is
 * created at a time; while nobody asks, there are none, and nothing runs.
 */
export class WarmPool<Sandbox extends WarmSandbox> {
  readonly #options: WarmPoolOptions;
  readonly #groups = new Map<string, WarmGroup<Sandbox>>();
  readonly #stop = new AbortController();
  /** Aborts the one that is being created. */
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

  /** How many exist or are being created. */
  get stock(): number {
    return [...this.#groups.values()].reduce((sum, { stock }) => sum + stock, 0);
  }

  /**
   * Returns one to the caller, once `adopt` has made it its own; undefined: none is ready, or it is unusable. More will
   * be created either way.
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

  /** Ends ready ones beyond this number, least recently requested first, and waits for their end. */
  async keepAtMost(places: number): Promise<void> {
    const before = this.stock;
    const groups = [...this.#groups.values()].toSorted((left, right) => left.lastAskedMs - right.lastAskedMs);
    for (const group of groups) {
      const tooMany = Math.max(0, this.stock - Math.max(0, places));
      if (tooMany > 0) this.#discard(group, Math.max(0, group.ready.length - tooMany));
    }
    if (this.stock < before) await Promise.all(this.#ends);
  }

  /** Discards those of these recipes, for example of a removed state. */
  forget(isMeant: (key: string) => boolean): void {
    for (const [key, group] of this.#groups) {
      if (!isMeant(key)) continue;
      this.#groups.delete(key);
      this.#discard(group, 0);
    }
  }

  /** Ends all of them, and creates no more. Idempotent. */
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

  /** A caller that leaves or times out discards it: it was created for that caller. */
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
      // A caller that left is not a failure. Its sandbox is still not given to another.
      if (signal?.aborted !== true) this.#problem(error);
      this.#end(sandbox);
      return false;
    }
  }

  #wake(): void {
    this.#work ??= this.#run();
    this.#nap.abort();
  }

  /** Ends by itself when nothing was requested lately. */
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

  /** Forgets old requests, and ends the resulting excess. */
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

  /** Most recently requested keys first. */
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
      // The waiting caller has it.
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
