import { randomUUID } from "node:crypto";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { Places } from "../support/places.ts";
import type { Effect, Notice } from "./core/effects.ts";
import { step } from "./core/instance.ts";
import { initialState, type InstanceState, isFrozenAt } from "./core/instance-state.ts";
import type { LeaseEvent, Reply } from "./core/messages.ts";
import type { LeaseSettings } from "./core/settings.ts";
import { performRequest, replyOfSilence } from "./store-requests.ts";

/** An event, before the time is added. */
export type UntimedEvent = LeaseEvent extends infer Event
  ? Event extends LeaseEvent
    ? Omit<Event, "nowMs" | "wallMs">
    : never
  : never;

export interface LeaseRunnerOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly settings: LeaseSettings;
  readonly onNotice: (notice: Notice) => void;
  /** A renewal or a look at the others failed; the next one comes anyway. */
  readonly onError: (error: unknown) => void;
}

/** Time limit of a request about a sandbox; requests about liveness are repeated after a third of the ttl. */
const SANDBOX_REQUEST_MS = 10_000;
/** How many requests wait for an answer at once, besides the few that keep this server alive. */
const REQUESTS_AT_ONCE = 190;

/** Runs the core on a real store and clock: passes events in, and carries out the effects. */
export class LeaseRunner {
  readonly #options: LeaseRunnerOptions;
  readonly #stop = new AbortController();
  readonly #places = new Places(REQUESTS_AT_ONCE);
  #state: InstanceState;

  constructor(options: LeaseRunnerOptions) {
    this.#options = options;
    this.#state = initialState(options.settings);
  }

  get state(): InstanceState {
    return this.#state;
  }

  get stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Aborted when nothing happens any more. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** By the clock at this moment, so that it is right even after a stall of the process. */
  get frozen(): boolean {
    return isFrozenAt(this.#state, this.#options.clock.monotonicMs());
  }

  /** Why it is frozen; undefined: it is not. */
  get frozenReason(): string | undefined {
    return frozenReasonOf(this.#state, this.#options.clock.monotonicMs());
  }

  /** Begins a life under an id that was never used. */
  start(): void {
    this.tell({ kind: "start", instanceId: randomUUID() });
  }

  tell(untimed: UntimedEvent): void {
    if (this.stopped) return;
    const { clock } = this.#options;
    const event = { ...untimed, nowMs: clock.monotonicMs(), wallMs: clock.wallMs() } as LeaseEvent;
    const { state, effects } = step(this.#state, event);
    this.#state = state;
    for (const effect of effects) this.#carryOut(effect);
  }

  /** Stops everything. Unanswered store requests may still be applied. */
  stop(): void {
    this.#stop.abort(new Error("The server is shutting down."));
  }

  #carryOut(effect: Effect): void {
    switch (effect.kind) {
      case "notice":
        return this.#options.onNotice(effect.notice);
      case "timer":
        return void this.#wait(effect);
      case "request":
        return void (mayWait(effect) ? this.#places.run(() => this.#ask(effect)) : this.#ask(effect));
    }
  }

  async #wait({ from, delayMs }: Effect & { kind: "timer" }): Promise<void> {
    await this.#options.clock.sleep(delayMs, this.#stop.signal).catch(() => {});
    this.tell({ kind: "timer", to: from });
  }

  async #ask(effect: RequestEffect): Promise<void> {
    if (this.stopped) return;
    const { from, request } = effect;
    const { clock, store, settings, onError } = this.#options;
    const timeoutMs = isOwn(effect) ? Math.min(settings.renewMs, SANDBOX_REQUEST_MS) : SANDBOX_REQUEST_MS;
    const answered = new AbortController();
    const silence = clock.sleep(timeoutMs, AbortSignal.any([answered.signal, this.#stop.signal]));
    const reply: Reply | undefined = await Promise.race([
      performRequest(store, request),
      silence.then(
        () => replyOfSilence(request),
        () => undefined,
      ),
    ]);
    answered.abort(ANSWERED);
    // Nothing happens any more.
    if (reply === undefined) return;
    if (isOwn(effect) && reply.outcome === "failed" && !this.stopped) onError(reply.error);
    this.tell({ kind: "reply", to: from, reply });
  }
}

/** Costs less than an error with a stack for each request. */
const ANSWERED = new Error("The store has answered.");

type RequestEffect = Effect & { kind: "request" };

/** Whether it is about the liveness of this server or of others. */
function isOwn({ from }: RequestEffect): boolean {
  return from.part === "self" || from.part === "others";
}

/** Thousands of these may come at once: looks at sandboxes, and the first looks at other servers. */
function mayWait({ from, request }: RequestEffect): boolean {
  return from.part === "sandbox" || (from.part === "others" && request.kind === "read-record");
}

/** Why an instance is frozen, for people; undefined: it is not. */
function frozenReasonOf(state: InstanceState, nowMs: number): string | undefined {
  if (!isFrozenAt(state, nowMs)) return undefined;
  const { self } = state;
  if (self === undefined) return "Another server declared this server dead; it is registering under a new id.";
  if (self.goodSinceMs === undefined) return "This server has not registered with the store yet.";
  const seconds = Math.round((nowMs - self.goodSinceMs) / 1000);
  return `The store has not confirmed a renewal of this server's lease for ${seconds} s.`;
}
