import { effect, signal, untracked, type ReadonlySignal } from "@preact/signals";
import type { IntegrityReport } from "@sandboxer/client";
import { asError, client, server } from "../session.ts";
import { connected, onEvent } from "./events.ts";

const found = signal<ReadonlyMap<string, string>>(new Map());

/** Sandboxes with damaged checkpoints by the last checks, by id; with the problem. */
export const damagedSandboxes: ReadonlySignal<ReadonlyMap<string, string>> = found;

/** Keeps {@link damagedSandboxes} up to date until the signal aborts. Snapshot records have their own state. */
export function keepDamage(signal_: AbortSignal): void {
  const stop = onEvent(({ type, sandboxId, data }) => {
    if (type === "operation.ended" && data["kind"] === "scrub") void load(signal_);
    if (type !== "store.damaged" || sandboxId === null || data["snapshot_id"] !== null) return;
    const { problem } = data;
    found.value = new Map(found.peek()).set(sandboxId, typeof problem === "string" ? problem : "The data is damaged.");
  });
  const stopLoading = effect(() => {
    if (connected.value && server.value?.store != null) untracked(() => void load(signal_));
  });
  signal_.addEventListener("abort", () => {
    stop();
    stopLoading();
  });
}

/** A check of all checkpoints of a sandbox replaces earlier results. */
export function noteVerified(sandboxId: string, { problems }: IntegrityReport): void {
  const next = new Map(found.peek());
  next.delete(sandboxId);
  for (const [id, problem] of ofSandboxes(problems)) next.set(id, problem);
  found.value = next;
}

async function load(signal_: AbortSignal): Promise<void> {
  try {
    const { last } = await client.scrubStatus({ signal: signal_ });
    if (last !== null) found.value = new Map([...found.peek(), ...ofSandboxes(last.problems)]);
  } catch (thrown) {
    if (!signal_.aborted) asError(thrown);
  }
}

function ofSandboxes(problems: IntegrityReport["problems"]): [string, string][] {
  return problems.flatMap(({ sandboxId, snapshotId, state, problem }) =>
    sandboxId === null || snapshotId !== null || state === "locked" ? [] : [[sandboxId, problem]],
  );
}
