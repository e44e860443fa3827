import type { Head } from "@sandboxer/protocol";
import { NO_OTHERS, type OthersState } from "./others.ts";
import type { SandboxState } from "./sandbox-state.ts";
import { isFrozen, type SelfState } from "./self.ts";
import type { LeaseSettings } from "./settings.ts";

/** Everything that one instance knows of the leases: its own life, the others', and the sandboxes it deals with. */
export interface InstanceState {
  readonly settings: LeaseSettings;
  /** Its present id, or the last one between two lives; "" before the first. */
  readonly instanceId: string;
  /** Undefined between two lives. */
  readonly self: SelfState | undefined;
  readonly others: OthersState;
  readonly sandboxes: ReadonlyMap<string, SandboxState>;
  readonly sweepTimer: number | undefined;
  readonly sequence: number;
}

export function initialState(settings: LeaseSettings): InstanceState {
  return {
    settings,
    instanceId: "",
    self: undefined,
    others: NO_OTHERS,
    sandboxes: new Map(),
    sweepTimer: undefined,
    sequence: 0,
  };
}

/** The head of a sandbox that this instance owns, as of its last change or look. */
export function heldHead(state: InstanceState, sandboxId: string): Head | undefined {
  return state.sandboxes.get(sandboxId)?.held?.head;
}

export function heldIds(state: InstanceState): readonly string[] {
  return [...state.sandboxes.values()].filter(({ held }) => held !== undefined).map(({ sandboxId }) => sandboxId);
}

/** Whether nothing that is held may run, be changed or be heard of now. */
export function isFrozenAt(state: InstanceState, nowMs: number): boolean {
  return state.self === undefined || isFrozen(state.self, state.settings.freezeMs, nowMs);
}
