import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxEnd } from "./backend.ts";

/** What calls fail with on a sandbox that has ended. `ended` in the details tells one that was paused from one that failed. */
export function sandboxEnded({ reason, message }: SandboxEnd): SandboxerError {
  const text = message.startsWith("The sandbox") ? message : `The sandbox has ended: ${message}`;
  return new SandboxerError("sandbox_failed", text, { details: { ended: reason } });
}
