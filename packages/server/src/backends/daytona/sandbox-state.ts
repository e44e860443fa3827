import type { SandboxState as VendorState } from "@daytona/api-client";

/** Daytona's documented states, without the generated client's placeholder for new ones. */
export type DaytonaState = Exclude<VendorState, "11184809">;

/** The meaning of a state for someone who needs a running sandbox. */
export type Phase = "running" | "resting" | "transition" | "failed" | "gone";

/**
 * A new state of the vendor breaks the type check here, when the generated client is updated.
 * https://www.daytona.io/docs/en/sandboxes/#sandbox-lifecycle
 */
const PHASES: Readonly<Record<DaytonaState, Phase>> = {
  started: "running",
  stopped: "resting",
  archived: "resting",
  paused: "resting",
  creating: "transition",
  restoring: "transition",
  starting: "transition",
  stopping: "transition",
  pending_build: "transition",
  building_snapshot: "transition",
  pulling_snapshot: "transition",
  archiving: "transition",
  resizing: "transition",
  snapshotting: "transition",
  forking: "transition",
  pausing: "transition",
  resuming: "transition",
  unknown: "transition",
  error: "failed",
  build_failed: "failed",
  destroying: "gone",
  destroyed: "gone",
};

/** An unknown state counts as transitional: errors name it, and waiting for it times out. */
export function phaseOf(state: string | undefined): Phase {
  return state !== undefined && isKnownState(state) ? PHASES[state] : "transition";
}

/** For people, so that a future state is recognisable. */
export function describeState(state: string | undefined): string {
  if (state === undefined) return "no state";
  return isKnownState(state) ? `the state "${state}"` : `the state "${state}", which this version does not know`;
}

function isKnownState(state: string): state is DaytonaState {
  return Object.hasOwn(PHASES, state);
}
