import type { Stamp } from "../head.ts";
import type { Effect, Notice, StoreRequest } from "./effects.ts";
import type { Address } from "./messages.ts";
import type { LeaseSettings } from "./settings.ts";

/** The view that the parts of the core have of each other during one step. */
export interface StepView {
  readonly settings: LeaseSettings;
  readonly me: string;
  /** Whether this instance has a live record: before that it owns nothing and requests nothing. */
  readonly registered: boolean;
  readonly nowMs: number;
  readonly wallMs: number;
  isDead(instanceId: string): boolean;
}

/** One step: collects effects and assigns numbers. It lives as long as the step and is not part of the state. */
export class StepContext {
  /** The current view: a step may change it. */
  view: StepView;
  readonly effects: Effect[] = [];
  /** Instances whose record is missing: they get a dead one, so that no process can use that id. */
  readonly missing: string[] = [];
  sequence: number;

  constructor(view: StepView, sequence: number) {
    this.view = view;
    this.sequence = sequence;
  }

  /** Unique among everything that this instance wrote under its current id. */
  nonce(): string {
    return `${this.view.me}.${++this.sequence}`;
  }

  stamp(): Stamp {
    return { nonce: this.nonce(), now: new Date(this.view.wallMs).toISOString() };
  }

  request(part: Address["part"], name: string, request: StoreRequest): number {
    const id = ++this.sequence;
    this.effects.push({ kind: "request", from: { part, name, id }, request });
    return id;
  }

  timer(part: Address["part"], name: string, delayMs: number): number {
    const id = ++this.sequence;
    this.effects.push({ kind: "timer", from: { part, name, id }, delayMs: Math.max(0, delayMs) });
    return id;
  }

  tell(notice: Notice): void {
    this.effects.push({ kind: "notice", notice });
  }
}
