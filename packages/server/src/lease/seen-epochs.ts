import type { ObjectStore } from "../store/store.ts";

/** The highest epoch of each sandbox that this process has seen, for this many sandboxes. */
const seenEpochs = new WeakMap<ObjectStore, Map<string, number>>();
const MOST_SEEN = 200_000;

/** 0 if it has seen none. */
export function seenEpoch(store: ObjectStore, sandboxId: string): number {
  return seenEpochs.get(store)?.get(sandboxId) ?? 0;
}

export function noteEpoch(store: ObjectStore, sandboxId: string, epoch: number): void {
  const seen = seenEpochs.get(store) ?? new Map<string, number>();
  seenEpochs.set(store, seen);
  if (epoch <= (seen.get(sandboxId) ?? 0)) return;
  seen.delete(sandboxId);
  seen.set(sandboxId, epoch);
  const [oldest] = seen.keys();
  if (seen.size > MOST_SEEN && oldest !== undefined) seen.delete(oldest);
}
