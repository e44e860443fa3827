import { type InstanceState, isFrozenAt } from "./core/instance-state.ts";

/** Why an instance may let nothing run now, for people; undefined: it may. */
export function frozenReasonOf(state: InstanceState, nowMs: number): string | undefined {
  if (!isFrozenAt(state, nowMs)) return undefined;
  const { self } = state;
  if (self === undefined) return "It was declared dead by another server, and registers under a new id.";
  if (self.goodSinceMs === undefined) return "It has not registered with the store yet.";
  const seconds = Math.round((nowMs - self.goodSinceMs) / 1000);
  return `The store has confirmed no renewal of its lease for ${seconds} s.`;
}
