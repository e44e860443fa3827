import { step } from "../../../src/lease/core/instance.ts";
import { initialState, type InstanceState, isFrozenAt } from "../../../src/lease/core/instance-state.ts";
import type { Command, LeaseEvent, Reply } from "../../../src/lease/core/messages.ts";
import type { Effect, Notice } from "../../../src/lease/core/effects.ts";
import { carry } from "./network.ts";
import type { World } from "./world.ts";

type Happening = LeaseEvent extends infer Event
  ? Event extends LeaseEvent
    ? Omit<Event, "nowMs" | "wallMs">
    : never
  : never;

/** Clocks of two instances differ in their rate by at most 2:1. */
const SLOWEST = 2 / 3;
const FASTEST = 4 / 3;

/** A server process around the core: with a clock of its own, that can be stopped, cut off and killed. */
export class SimulatedInstance {
  readonly name: string;
  readonly #world: World;
  readonly #onNotice: (notice: Notice) => void;
  readonly #onCrash: () => void;
  readonly #rate: number;
  readonly #offsetMs: number;
  #wallOffsetMs: number;
  #state: InstanceState;
  #incarnation = 0;
  #tickets = 0;
  stoppedUntilMs = 0;
  cutOffUntilMs = 0;

  constructor(world: World, name: string, onNotice: (notice: Notice) => void, onCrash: () => void) {
    this.#world = world;
    this.name = name;
    this.#onNotice = onNotice;
    this.#onCrash = onCrash;
    this.#rate = world.chaos.between(SLOWEST, FASTEST);
    this.#offsetMs = world.chaos.between(0, 1_000_000);
    this.#wallOffsetMs = world.chaos.between(-60_000, 60_000);
    this.#state = initialState(world.settings());
  }

  get instanceId(): string {
    return this.#state.instanceId;
  }

  /** The instance's own monotonic clock. */
  get #clockMs(): number {
    const { bug, timeline } = this.#world;
    if (bug === "wall-clock-expiry") return this.#wallMs;
    return this.#offsetMs + timeline.nowMs * this.#rate;
  }

  get #wallMs(): number {
    return 1_790_000_000_000 + this.#world.timeline.nowMs + this.#wallOffsetMs;
  }

  get frozen(): boolean {
    return this.#world.bug !== "no-freeze" && isFrozenAt(this.#state, this.#clockMs);
  }

  get registered(): boolean {
    return this.#state.self?.condition === "alive";
  }

  start(): void {
    this.#tell({ kind: "start", instanceId: this.#world.name(`instance-${this.name}`) });
  }

  get nextTicket(): number {
    return this.#tickets + 1;
  }

  command(sandboxId: string, command: Command): void {
    this.#tell({ kind: "command", sandboxId, ticket: ++this.#tickets, command });
  }

  abandon(sandboxId: string, ticket: number): void {
    this.#tell({ kind: "abandon", sandboxId, ticket });
  }

  /** Its record says dead, and it does nothing more. */
  close(): void {
    this.#tell({ kind: "close", ticket: ++this.#tickets });
  }

  ring(sandboxId: string): void {
    const { incarnation } = this;
    this.#world.timeline.after(20, () => this.#run(incarnation, () => this.#tell({ kind: "rung", sandboxId })));
  }

  /** Does something later, as long as this process lives; not while it is stopped. */
  after(delayMs: number, action: () => void): void {
    const { incarnation } = this;
    this.#world.timeline.after(delayMs, () => this.#run(incarnation, action));
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  jump(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** All memory is lost. Another process starts in its place, under another id. */
  crash(restartAfterMs: number): void {
    this.#incarnation++;
    this.#state = initialState(this.#world.settings());
    this.stoppedUntilMs = 0;
    this.#onCrash();
    this.after(restartAfterMs, () => this.start());
  }

  #tell(happening: Happening): void {
    const event = { ...happening, nowMs: this.#clockMs, wallMs: this.#wallMs } as LeaseEvent;
    const { state, effects } = step(this.#state, event);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case "notice":
        return this.#onNotice(effect.notice);
      case "timer":
        return this.after(effect.delayMs / this.#rate, () => this.#tell({ kind: "timer", to: effect.from }));
      case "request": {
        const { incarnation, instanceId, name } = this;
        const answer = (reply: Reply): void => {
          const seen = this.#misread(reply, effect.request.kind);
          this.#run(incarnation, () => this.#tell({ kind: "reply", to: effect.from, reply: seen }));
        };
        return carry(this.#world, { instanceId, name, machine: this }, effect.request, answer);
      }
    }
  }

  #misread(reply: Reply, kind: string): Reply {
    if (this.#world.bug !== "ambiguous-as-success" || kind !== "swap-head") return reply;
    return reply.outcome === "ambiguous" ? { outcome: "written", version: "unknown" } : reply;
  }

  #run(incarnation: number, action: () => void): void {
    if (incarnation !== this.#incarnation) return;
    const { timeline } = this.#world;
    if (timeline.nowMs >= this.stoppedUntilMs) return action();
    timeline.after(this.stoppedUntilMs - timeline.nowMs, () => this.#run(incarnation, action));
  }
}
