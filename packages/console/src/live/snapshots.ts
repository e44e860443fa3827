import { effect, signal, untracked, type ReadonlySignal } from "@preact/signals";
import type { SandboxerError, SnapshotRecord } from "@sandboxer/client";
import { asError, client } from "../session.ts";
import { connected, onEvent } from "./events.ts";

/** Other servers of the store take snapshots too, and send this one no events. */
const REFRESH_MS = 15_000;
/** Events come in bursts; one request after them shows the result. */
const SETTLE_MS = 200;

const records = signal<ReadonlyMap<string, SnapshotRecord>>(new Map());
const state = signal<{ readonly loaded: boolean; readonly error: SandboxerError | undefined }>({
  loaded: false,
  error: undefined,
});

/** Every snapshot, by id, newest first; up to date while it is in use. */
export const snapshots: ReadonlySignal<ReadonlyMap<string, SnapshotRecord>> = records;
export const snapshotsState = state as ReadonlySignal<typeof state.value>;

/** Keeps {@link snapshots} up to date until the signal aborts. */
export function keepSnapshots(signal_: AbortSignal): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const load = (): void => {
    timer = undefined;
    void loadSnapshots(signal_);
  };
  const stop = onEvent(({ type, data }) => {
    // A restore or the end of a sandbox changes the lists in snapshot records.
    const matters = type.startsWith("snapshot.") || type === "sandbox.restored" || data["to"] === "gone";
    if (matters) timer ??= setTimeout(load, SETTLE_MS);
  });
  const interval = setInterval(() => {
    if (document.visibilityState === "visible") load();
  }, REFRESH_MS);
  // At first, and whenever a connection is restored: events in between were missed.
  const stopLoading = effect(() => {
    if (connected.value || !state.peek().loaded) untracked(load);
  });
  signal_.addEventListener("abort", () => {
    stop();
    stopLoading();
    clearTimeout(timer);
    clearInterval(interval);
  });
}

export async function loadSnapshots(signal_?: AbortSignal): Promise<void> {
  try {
    const found = new Map<string, SnapshotRecord>();
    for await (const snapshot of client.snapshots.list({ limit: 1000 }, { signal: signal_ })) {
      found.set(snapshot.id, snapshot);
    }
    records.value = found;
    state.value = { loaded: true, error: undefined };
  } catch (thrown) {
    if (signal_?.aborted !== true) state.value = { ...state.peek(), error: asError(thrown) };
  }
}

export function noteSnapshot(record: SnapshotRecord): void {
  records.value = new Map(records.peek()).set(record.id, record);
}

export function forgetSnapshot(id: string): void {
  const next = new Map(records.peek());
  if (next.delete(id)) records.value = next;
}
