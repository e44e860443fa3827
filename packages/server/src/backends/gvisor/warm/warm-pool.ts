import type { CallOptions } from "../../../support/call-options.ts";
import type { Clock } from "../../../support/clock.ts";
import type { WarmFigures } from "../../backend.ts";
import { allot } from "./allot.ts";
import { Shelf, type Recipe, type WarmSandbox } from "./shelf.ts";

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
  readonly #shelves = new Map<string, Shelf<Sandbox>>();
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
    const shelves = [...this.#shelves.values()];
    return {
      max: this.#options.max,
      ready: shelves.reduce((sum, { ready }) => sum + ready.length, 0),
      preparing: shelves.filter(({ making }) => making !== undefined).length,
      ...this.#counts,
    };
  }

  /** How many are there or on their way. */
  get stock(): number {
    return [...this.#shelves.values()].reduce((sum, { stock }) => sum + stock, 0);
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
    const shelf = this.#shelves.get(recipe.key) ?? new Shelf(recipe);
    this.#shelves.set(recipe.key, shelf);
    shelf.recipe = recipe;
    shelf.asked(this.#nowMs);
    const taking = shelf.take();
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
    const shelves = [...this.#shelves.values()].toSorted((left, right) => left.lastAskedMs - right.lastAskedMs);
    for (const shelf of shelves) {
      const tooMany = Math.max(0, this.stock - Math.max(0, places));
      if (tooMany > 0) this.#discard(shelf, Math.max(0, shelf.ready.length - tooMany));
    }
    if (this.stock < before) await Promise.all(this.#ends);
  }

  /** Throws away what was made by these recipes, such as those of a state that is removed. */
  forget(isMeant: (key: string) => boolean): void {
    for (const [key, shelf] of this.#shelves) {
      if (!isMeant(key)) continue;
      this.#shelves.delete(key);
      this.#discard(shelf, 0);
    }
  }

  /** Ends all of them, and makes no more. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#nap.abort();
    for (const { making } of this.#shelves.values()) making?.hurry.abort();
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
      if (this.#shelves.size === 0) {
        this.#work = undefined;
        return;
      }
      const shelf = room === "free" ? this.#neediest() : undefined;
      this.#nap = new AbortController();
      if (shelf === undefined) await this.#sleep(LOOK_MS, this.#nap.signal);
      else await this.#fill(shelf);
    }
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.#options.clock.sleep(ms, signal).catch(() => {});
  }

  /** Forgets what was asked for long ago, and ends what is then too much. */
  #tidy(room: Room): void {
    const sinceMs = this.#nowMs - WINDOW_MS;
    for (const [key, shelf] of this.#shelves) {
      if (shelf.isForgotten(sinceMs) && shelf.making === undefined) {
        this.#shelves.delete(key);
        this.#discard(shelf, 0);
      }
    }
    for (const [shelf, count] of this.#allotted(room === "short" ? 0 : this.#options.max)) this.#discard(shelf, count);
  }

  /** The keys that were asked for last come first. */
  #allotted(places: number): Map<Shelf<Sandbox>, number> {
    const shelves = [...this.#shelves.values()].toSorted((left, right) => right.lastAskedMs - left.lastAskedMs);
    const given = allot(
      shelves.map(({ wanted }) => wanted),
      places,
    );
    return new Map(shelves.map((shelf, index) => [shelf, given[index]!]));
  }

  #neediest(): Shelf<Sandbox> | undefined {
    const wanting = [...this.#allotted(this.#options.max)].filter(
      ([shelf, count]) => shelf.stock < count && shelf.mayMake(this.#nowMs),
    );
    return wanting.toSorted(([left], [right]) => left.stock - right.stock)[0]?.[0];
  }

  async #fill(shelf: Shelf<Sandbox>): Promise<void> {
    const hurry = new AbortController();
    const made = shelf.recipe.make({ signal: this.#callOff.signal, hurry: hurry.signal });
    const making = { made, hurry, claimed: false };
    shelf.making = making;
    try {
      const sandbox = await made;
      // Whoever waits for it has it.
      if (making.claimed) return;
      if (this.#shelves.get(shelf.recipe.key) === shelf) this.#keep(shelf, sandbox);
      else this.#end(sandbox);
    } catch (error) {
      shelf.failed(this.#nowMs);
      if (!this.#stop.signal.aborted) this.#problem(error);
    } finally {
      shelf.making = undefined;
    }
  }

  #keep(shelf: Shelf<Sandbox>, sandbox: Sandbox): void {
    shelf.ready.push(sandbox);
    void sandbox.ended.then(() => {
      const place = shelf.ready.indexOf(sandbox);
      if (place < 0) return;
      shelf.ready.splice(place, 1);
      shelf.failed(this.#nowMs);
      this.#problem(new Error("It has ended before anybody had it."));
    });
  }

  #discard({ ready }: Shelf<Sandbox>, keep: number): void {
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
    this.#options.onProblem("a sandbox that was started ahead of the need is of no use", error);
  }
}
