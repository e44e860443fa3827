import type { StoreRequest } from "../../../src/lease/core/effects.ts";
import { type HeadMoves, headMoves } from "../../../src/lease/head.ts";
import { leaseSettings, type LeaseSettings } from "../../../src/lease/core/settings.ts";
import type { Bug } from "./bugs.ts";
import type { FaultPlan } from "./fault-plan.ts";
import { Ledger } from "./ledger.ts";
import { Random } from "./random.ts";
import { kindOfNext } from "./kept.ts";
import { SimulatedProvider } from "./simulated-provider.ts";
import { SimulatedStore } from "./simulated-store.ts";
import { Timeline } from "./timeline.ts";

export const TTL_MS = 3_000;
/** More than 1.5 ttl, by the clocks' rates. */
export const HANDOFF_TIMEOUT_MS = 3 * TTL_MS;
/** After so long without an answer a request counts as lost. */
export const REQUEST_TIMEOUT_MS = 900;

/** Shared by the parts of one simulated schedule. Everything in it follows from the seed and the plan. */
export class World {
  readonly timeline = new Timeline();
  readonly store: SimulatedStore;
  readonly ledger: Ledger;
  readonly provider: SimulatedProvider;
  readonly plan: FaultPlan;
  readonly bug: Bug | undefined;
  /** Clients, network and machines have separate random numbers. */
  readonly workload: Random;
  readonly weather: Random;
  readonly chaos: Random;
  /** Only under the bug "no-tombstone": who is taken for dead without a record that says so. */
  readonly takenForDead = new Set<string>();
  /** The sandboxes that clients use, and all that ever existed. */
  sandboxIds: string[] = [];
  readonly allSandboxIds: string[] = [];
  faulty = true;
  /** When clients began to expect that everything works. */
  calmSinceMs = Number.POSITIVE_INFINITY;
  /** Tells an owner that it is asked; and checks that nobody else lets a sandbox run. Set when there are managers. */
  ring: (instanceId: string, sandboxId: string) => void = () => {};
  checkAlone: (sandboxId: string, runner: object) => void = () => {};
  /** How many times longer than usual the way to the store and back is. */
  slowness = 1;
  onRequest: (kind: StoreRequest["kind"]) => void = () => {};
  #names = 0;

  constructor(seed: number, plan: FaultPlan, bug: Bug | undefined) {
    this.plan = plan;
    this.bug = bug;
    this.workload = new Random(seed * 3 + 1);
    this.weather = new Random(seed * 7 + 2);
    this.chaos = new Random(seed * 11 + 3);
    this.ledger = new Ledger((instanceId) => this.#isDead(instanceId));
    this.store = new SimulatedStore(this.ledger);
    this.provider = new SimulatedProvider(this);
    for (let count = 0; count < 3; count++) this.addSandbox();
  }

  addSandbox(): void {
    const sandboxId = this.name(kindOfNext(this.allSandboxIds.length));
    this.sandboxIds = [...this.sandboxIds.filter((id) => !this.ledger.isDeleted(id)), sandboxId];
    this.allSandboxIds.push(sandboxId);
  }

  name(kind: string): string {
    return `${kind}-${++this.#names}`;
  }

  settings(): LeaseSettings {
    const moves = this.bug === "epoch-not-bumped" ? WITHOUT_EPOCH : headMoves;
    return leaseSettings(TTL_MS, "http://instance", {
      moves,
      sweepMs: TTL_MS / 4,
      sweepTickMs: TTL_MS / 4,
      waitPollMs: TTL_MS / 12,
    });
  }

  #isDead(instanceId: string): boolean {
    const record = this.store.records.get(instanceId)?.body;
    return record?.dead === true || this.takenForDead.has(instanceId);
  }
}

const WITHOUT_EPOCH: HeadMoves = {
  ...headMoves,
  claim: (claimant, deadOwner) => (head, stamp) => {
    const result = headMoves.claim(claimant, deadOwner)(head, stamp);
    return "head" in result ? { head: { ...result.head, epoch: head.epoch } } : result;
  },
};
