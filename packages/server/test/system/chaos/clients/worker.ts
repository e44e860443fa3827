import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../../../lease/simulation/random.ts";
import { beginLife } from "./begin-life.ts";
import type { ClientContext } from "./client-context.ts";
import type { SandboxLife } from "./sandbox-life.ts";

/** How many steps a sandbox lives for: its log stays short, and sandboxes come and go. */
const STEPS = [15, 60] as const;
const PROBE_MS = [300, 1_500] as const;

/** The actions of a client, with their relative frequencies. */
const ACTS: readonly [weight: number, act: (life: SandboxLife, signal: AbortSignal) => Promise<unknown>][] = [
  [60, (life, signal) => life.step(signal)],
  [8, (life) => life.save("live")],
  [8, (life) => life.save("pause")],
  [8, (life, signal) => life.locate(signal)],
  [5, (life) => life.handOff()],
  [3, (life) => life.snapshot()],
  [5, (life) => life.checkSnapshot()],
];

/** A client with one sandbox after the other, and a second one that looks who runs it. */
export class Worker {
  readonly #context: ClientContext;
  readonly #random: Random;
  readonly #probeRandom: Random;
  readonly lives: SandboxLife[] = [];

  constructor(context: ClientContext, seed: number) {
    this.#context = context;
    this.#random = new Random(seed);
    this.#probeRandom = new Random(~seed);
  }

  /** The sandbox that it has now. */
  get present(): SandboxLife | undefined {
    const life = this.lives.at(-1);
    return life?.isOver === true ? undefined : life;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#work(signal), this.#probe(signal)]);
  }

  /** After the run: the sandbox that is left is still what it was, here and there. */
  async finish(signal: AbortSignal): Promise<void> {
    let isReached = false;
    while (!isReached && !signal.aborted && this.present !== undefined) isReached = await this.present.step(signal);
    if (!isReached) this.present?.record.report("stuck", "It could not be used although all faults were over.");
    await this.present?.probe();
  }

  async #work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const life = await beginLife(this.#context, this.#random);
      if (life === undefined) await this.#think(signal);
      else {
        this.lives.push(life);
        await this.#live(life, signal);
      }
    }
  }

  async #live(life: SandboxLife, signal: AbortSignal): Promise<void> {
    const steps = this.#random.between(...STEPS);
    while (!signal.aborted && !life.isOver && life.steps < steps) {
      if (life.isSeen) await this.#act(life, signal);
      else await life.step(signal);
      await this.#think(signal);
    }
    if (!signal.aborted && !life.isOver) await life.delete(signal);
  }

  async #act(life: SandboxLife, signal: AbortSignal): Promise<void> {
    let left = this.#random.between(
      0,
      ACTS.reduce((sum, [weight]) => sum + weight, 0),
    );
    const [, act] = ACTS.find(([weight]) => (left -= weight) < 0) ?? ACTS[0] ?? [];
    await act?.(life, signal);
  }

  async #probe(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.present?.probe();
      await delay(this.#probeRandom.between(...PROBE_MS), undefined, { signal }).catch(() => {});
    }
  }

  async #think(signal: AbortSignal): Promise<void> {
    await delay(this.#random.between(0, this.#context.thinkMs), undefined, { signal }).catch(() => {});
  }
}
