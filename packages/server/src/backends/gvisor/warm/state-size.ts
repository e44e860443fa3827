import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backend.ts";

/** Of the memory that is free, what a state may take that nobody has asked for yet. */
const SHARE = 0.25;

/** Whether a state is small enough for this machine to be kept ready. */
export function isSmall(sizeBytes: number): boolean {
  return sizeBytes <= process.availableMemory() * SHARE;
}

/** Refuses to keep a state ready that has turned out to be large: its record may say less, and memory goes. */
export function checkSize({ members }: SnapshotPayload): void {
  const sizeBytes = members.reduce((sum, member) => sum + member.sizeBytes, 0);
  if (isSmall(sizeBytes)) return;
  throw new SandboxerError("limit_reached", `The state of ${sizeBytes} bytes is too large for the warm pool.`);
}
