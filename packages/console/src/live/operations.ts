import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import type { EventRecord, OperationRecord } from "@sandboxer/client";
import { fromWire, type Answer } from "@sandboxer/client/transport";
import { client } from "../session.ts";
import { connected, onEvent } from "./events.ts";

/** Finished ones stay visible for a while, so that users see the result. */
const KEEP_ENDED = 20;

const records = signal<ReadonlyMap<string, OperationRecord>>(new Map());

/** The running and recently finished operations of this server; newest first. */
export const operations: ReadonlySignal<readonly OperationRecord[]> = computed(() =>
  [...records.value.values()].toSorted((a, b) => b.startedAt.localeCompare(a.startedAt)),
);
export const runningOperations: ReadonlySignal<readonly OperationRecord[]> = computed(() =>
  operations.value.filter(({ state }) => state === "running"),
);

/** Keeps {@link operations} up to date until the signal aborts. */
export function keepOperations(signal_: AbortSignal): void {
  const stopListening = onEvent((event) => {
    const operation = operationOfEvent(event);
    if (operation !== undefined) note(operation);
  });
  // Changes during a lost connection are requested.
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
    // The next connection tries again; an empty tray does no harm.
  }
}

function note(operation: OperationRecord): void {
  const next = new Map(records.peek());
  const known = next.get(operation.id);
  // Progress may arrive late: a finished operation stays finished.
  if (known !== undefined && known.state !== "running" && operation.state === "running") return;
  next.set(operation.id, operation);
  const ended = [...next.values()].filter(({ state }) => state !== "running");
  for (const { id } of ended.slice(0, Math.max(0, ended.length - KEEP_ENDED))) next.delete(id);
  records.value = next;
}

/** The record in an operation event; undefined for other events. */
export function operationOfEvent({ type, data }: EventRecord): OperationRecord | undefined {
  if (!type.startsWith("operation.") || typeof data["id"] !== "string") return undefined;
  return { ...fromWire(data as unknown as Answer<"getOperation">), result: null };
}
