import type { OperationRecord } from "@sandboxer/client";

const TITLES: Readonly<Record<OperationRecord["kind"], string>> = {
  create: "Create",
  acquire: "Acquire",
  checkpoint: "Checkpoint",
  resume: "Resume",
  snapshot: "Snapshot",
  prove: "Test restore",
  verify: "Verify",
  scrub: "Scrub of the store",
  restore: "Restore",
  fork: "Fork",
  rewind: "Rewind",
  promote: "Promotion",
  move: "Move to another backend",
  handoff: "Handoff",
  pull: "Pull of an image",
  recreate: "Recreate",
  destroy: "Delete",
};

export function operationTitle(kind: string): string {
  return TITLES[kind as OperationRecord["kind"]] ?? kind;
}

interface Transfer {
  readonly doneBytes: number;
  readonly totalBytes: number | undefined;
  readonly bytesPerSecond: number;
  readonly secondsLeft: number | undefined;
}

/** The speed and remaining time of the current phase; undefined if it moves no bytes. */
export function transferOf(operation: OperationRecord): Transfer | undefined {
  const { doneBytes, totalBytes, elapsedMs, phases } = operation;
  if (doneBytes === null) return undefined;
  // The bytes belong to this phase; including earlier time would make the rate too low.
  const phaseMs = elapsedMs - Object.values(phases).reduce((sum, milliseconds) => sum + milliseconds, 0);
  const bytesPerSecond = phaseMs > 0 ? (doneBytes * 1_000) / phaseMs : 0;
  const known = totalBytes === null || totalBytes <= 0 ? undefined : totalBytes;
  const secondsLeft =
    known === undefined || bytesPerSecond === 0 ? undefined : Math.max(0, known - doneBytes) / bytesPerSecond;
  return { doneBytes, totalBytes: known, bytesPerSecond, secondsLeft };
}
