import type { Head } from "@sandboxer/protocol";
import { BucketMap } from "../../support/bucket-map.ts";
import { NO_OTHERS, type OthersState } from "./others.ts";
import type { SandboxState } from "./sandbox-state.ts";
import { isFrozen, type SelfState } from "./self.ts";
import type { LeaseSettings } from "./settings.ts";

/** Everything that one instance knows about leases: its own life, the other instances, and its sandboxes. */
export interface InstanceState {
  readonly settings: LeaseSettings;
  /** The current id, or the last one between two lives; "" before the first. */
  readonly instanceId: string;
  /** Undefined between two lives. */
  readonly self: SelfState | undefined;
  readonly others: OthersState;
  readonly sandboxes: BucketMap<SandboxState>;
  readonly sweepTimer: number | undefined;
  /** Held sandboxes that this round of looks has not reached yet. */
  readonly unswept: readonly string[];
  readonly sequence: number;
}

export function initialState(settings: LeaseSettings): InstanceState {
  return {
    settings,
    instanceId: "",
    self: undefined,
    others: NO_OTHERS,
    sandboxes: BucketMap.empty(),
    sweepTimer: undefined,
    unswept: [],
    sequence: 0,
  };
}

/** The head of a sandbox that this instance owns, as of its last change or look. */
export function heldHead(state: InstanceState, sandboxId: string): Head | undefined {
  return state.sandboxes.get(sandboxId)?.held?.head;
}

export function heldIds(state: InstanceState): readonly string[] {
  return [...state.sandboxes.values()].flatMap(({ held, sandboxId }) => (held === undefined ? [] : [sandboxId]));
}

/** Whether held sandboxes must not run, change or send output now. */
export function isFrozenAt(state: InstanceState, nowMs: number): boolean {
  return state.self === undefined || isFrozen(state.self, state.settings.freezeMs, nowMs);
}
