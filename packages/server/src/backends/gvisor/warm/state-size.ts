import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backend.ts";

/** Of the memory that is free, what a state may take that nobody has asked for yet. */
const SHARE = 0.25;

/** Refuses to keep a state ready that is large for this machine. */
export function checkSize({ members }: SnapshotPayload): void {
  const sizeBytes = members.reduce((sum, member) => sum + member.sizeBytes, 0);
  if (sizeBytes <= process.availableMemory() * SHARE) return;
  throw new SandboxerError("limit_reached", `The state of ${sizeBytes} bytes is too large to be kept ready.`);
}
