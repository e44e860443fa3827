import { signal, type ReadonlySignal } from "@preact/signals";
import { Sandbox, type DamagedSandbox, type SandboxRecord, type SandboxerError } from "@sandboxer/client";
import { asError, client } from "../session.ts";
import { followEvents, onEvent } from "./events.ts";

/** Other servers of the store send this one no events: their sandboxes are polled. */
const REFRESH_MS = 5_000;
const SLOW_REFRESH_MS = 20_000;
const MANY = 500;
/** Events come in bursts; one request after them shows the result. */
const SETTLE_MS = 120;

/** Sandboxes that were deleted while this page was open: an id is never reused. */
const gone = new Set<string>();
const records = signal<ReadonlyMap<string, SandboxRecord>>(new Map());
const state = signal<{ readonly loaded: boolean; readonly error: SandboxerError | undefined }>({
  loaded: false,
  error: undefined,
});

const unreadable = signal<readonly DamagedSandbox[]>([]);

/** Stored sandboxes whose record cannot be read. */
export const unreadableSandboxes: ReadonlySignal<readonly DamagedSandbox[]> = unreadable;

/** Every sandbox of this server and of its store, by id, newest first. */
export const sandboxes: ReadonlySignal<ReadonlyMap<string, SandboxRecord>> = records;
export const sandboxesState = state as ReadonlySignal<typeof state.value>;

/** Keeps {@link sandboxes} up to date until the signal aborts. */
export function keepSandboxes(signal_: AbortSignal): void {
  const changed = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const settle = (): void => {
    timer = undefined;
    const ids = [...changed];
    changed.clear();
    // Many changes at once are cheaper as one list.
    if (ids.length > 20) void loadSandboxes(signal_);
    else for (const id of ids) void refreshSandbox(id);
  };
  const stop = onEvent(({ type, sandboxId }) => {
    if (sandboxId === null || type === "operation.progress" || type.startsWith("execution.")) return;
    changed.add(sandboxId);
    timer ??= setTimeout(settle, SETTLE_MS);
  });
  signal_.addEventListener("abort", () => {
    stop();
    clearTimeout(timer);
  });
  void followEvents(signal_, () => void loadSandboxes(signal_));
  void repeat(signal_);
}

async function repeat(signal_: AbortSignal): Promise<void> {
  while (!signal_.aborted) {
    if (document.visibilityState === "visible") await loadSandboxes(signal_);
    const waitMs = records.peek().size > MANY ? SLOW_REFRESH_MS : REFRESH_MS;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

export async function loadSandboxes(signal_?: AbortSignal): Promise<void> {
  try {
    const found = new Map<string, SandboxRecord>();
    const damaged: DamagedSandbox[] = [];
    const onDamaged = (each: DamagedSandbox): void => void damaged.push(each);
    for await (const { record } of Sandbox.list({ limit: 1000 }, { client, signal: signal_, onDamaged })) {
      if (!gone.has(record.id)) found.set(record.id, record);
    }
    records.value = found;
    unreadable.value = damaged;
    state.value = { loaded: true, error: undefined };
  } catch (thrown) {
    if (signal_?.aborted !== true) state.value = { ...state.peek(), error: asError(thrown) };
  }
}

/** Reads one of them again: after an event, or after an action. */
export async function refreshSandbox(id: string): Promise<void> {
  if (gone.has(id)) return;
  try {
    const { record } = await Sandbox.attach(id, { client });
    noteSandbox(record);
  } catch (thrown) {
    const { code } = asError(thrown);
    if (code === "sandbox_not_found" || code === "sandbox_destroyed") forgetSandbox(id);
  }
}

export function noteSandbox(record: SandboxRecord): void {
  const known = records.peek();
  if (gone.has(record.id)) return;
  if (known.has(record.id)) {
    records.value = new Map(known).set(record.id, record);
    return;
  }
  // Answers about several new ones come in any order.
  const entries = [...known];
  const older = entries.findIndex(([, { createdAt }]) => createdAt < record.createdAt);
  records.value = new Map(entries.toSpliced(older === -1 ? entries.length : older, 0, [record.id, record]));
}

export function forgetSandbox(id: string): void {
  gone.add(id);
  const next = new Map(records.peek());
  if (next.delete(id)) records.value = next;
}
