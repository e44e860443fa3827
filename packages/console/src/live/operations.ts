import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import type { EventRecord, OperationRecord } from "@sandboxer/client";
import { fromWire, type Answer } from "@sandboxer/client/transport";
import { client } from "../session.ts";
import { connected, onEvent } from "./events.ts";

/** Ended ones stay in sight, so that a person who looks away for a moment sees how it went. */
const KEEP_ENDED = 20;

const records = signal<ReadonlyMap<string, OperationRecord>>(new Map());

/** What this server has under way, and what has ended lately; newest first. */
export const operations: ReadonlySignal<readonly OperationRecord[]> = computed(() =>
  [...records.value.values()].toSorted((a, b) => b.startedAt.localeCompare(a.startedAt)),
);
export const runningOperations: ReadonlySignal<readonly OperationRecord[]> = computed(() =>
  operations.value.filter(({ state }) => state === "running"),
);

/** Keeps {@link operations} true until the signal aborts. */
export function keepOperations(signal_: AbortSignal): void {
  const stopListening = onEvent((event) => {
    const operation = operationOfEvent(event);
    if (operation !== undefined) note(operation);
  });
  // What happened while there was no connection is asked for.
  const stopLoading = effect(() => {
    if (connected.value) void load(signal_);
  });
  signal_.addEventListener("abort", () => {
    stopListening();
    stopLoading();
  });
}

async function load(signal_: AbortSignal): Promise<void> {
  try {
    const running = new Map<string, OperationRecord>();
    for await (const operation of client.operations({ state: "running" }, { signal: signal_ })) {
      running.set(operation.id, operation);
    }
    const ended = [...records.peek().values()].filter(({ id, state }) => state !== "running" && !running.has(id));
    records.value = new Map([...ended.map((operation) => [operation.id, operation] as const), ...running]);
  } catch {
    // The next connection asks again; a tray without operations harms nobody.
  }
}

function note(operation: OperationRecord): void {
  const next = new Map(records.peek());
  const known = next.get(operation.id);
  // Progress may be told late: what has ended stays so.
  if (known !== undefined && known.state !== "running" && operation.state === "running") return;
  next.set(operation.id, operation);
  const ended = [...next.values()].filter(({ state }) => state !== "running");
  for (const { id } of ended.slice(0, Math.max(0, ended.length - KEEP_ENDED))) next.delete(id);
  records.value = next;
}

/** The record in an event about an operation; undefined for other events. */
export function operationOfEvent({ type, data }: EventRecord): OperationRecord | undefined {
  if (!type.startsWith("operation.") || typeof data["id"] !== "string") return undefined;
  return { ...fromWire(data as unknown as Answer<"getOperation">), result: null };
}
