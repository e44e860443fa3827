import type { StoreRequest } from "../../../../src/lease/core/effects.ts";
import { leaseSettings, type LeaseSettings } from "../../../../src/lease/core/settings.ts";
import type { Bug } from "../bugs.ts";
import { FaultPlan } from "../fault-plan.ts";
import { World } from "../world.ts";

export const FLEET_TTL_MS = 15_000;

/** The world of a fleet: the lease time of the product, and a count of the requests. */
export class FleetWorld extends World {
  readonly counts: Record<StoreRequest["kind"], number> = {
    "read-head": 0,
    "swap-head": 0,
    "read-record": 0,
    "swap-record": 0,
    "list-records": 0,
  };
  /** Sandboxes that ran on a server that has ended: the others resume them. */
  readonly orphans: string[] = [];

  constructor(seed: number, sandboxes: number, bug: Bug | undefined) {
    super(seed, new FaultPlan(), bug);
    this.faulty = false;
    this.sandboxIds = Array.from({ length: sandboxes }, (_, number) => `sandbox-of-fleet-${number}`);
    this.onRequest = (kind) => void (this.counts[kind] += 1);
  }

  override settings(): LeaseSettings {
    const { moves } = super.settings();
    return leaseSettings(FLEET_TTL_MS, "http://server", { moves });
  }
}
