import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backend.ts";

/** The share of free memory that a preloaded state may use. */
const SHARE = 0.25;

/** Whether a state is small enough to be preloaded on this machine. */
export function isSmall(sizeBytes: number): boolean {
  return sizeBytes <= process.availableMemory() * SHARE;
}

/** Refuses to preload a state that turned out to be large: its record may be wrong. */
export function checkSize({ members }: SnapshotPayload): void {
  const sizeBytes = members.reduce((sum, member) => sum + member.sizeBytes, 0);
  if (isSmall(sizeBytes)) return;
  throw new SandboxerError("limit_reached", `The state of ${sizeBytes} bytes is too large for the warm pool.`);
}
