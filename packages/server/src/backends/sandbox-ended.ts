import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxEnd } from "./backend.ts";

/** The error of calls on an ended sandbox. `ended` in the details distinguishes a paused one from a failed one. */
export function sandboxEnded({ reason, message }: SandboxEnd): SandboxerError {
  const text = message.startsWith("The sandbox") ? message : `The sandbox has ended: ${message}`;
  return new SandboxerError("sandbox_failed", text, { details: { ended: reason } });
}
