import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxProcess } from "../../backends/backend.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import type { NetworkAccess } from "../network/network-access.ts";
import { freezeIfDue } from "../ownership/freeze.ts";
import { watchForEnd } from "./end-of-sandbox.ts";

/** Throws unless the sandbox is running and no client is attached to it. */
export function checkFree(sandbox: LiveSandbox): void {
  sandbox.checkRunning();
  if (sandbox.client !== undefined) throw new SandboxerError("sandbox_in_use", "A client is attached to the sandbox.");
}

/**
 * Switches to another copy of the sandbox in one step: every later call reaches the new copy. Returns the handle of the
 * old one, which the caller ends. Facts that change with the copy are amended before.
 */
export function switchCopy(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { handle, network }: { readonly handle: SandboxHandle; readonly network: NetworkAccess },
  processes: readonly SandboxProcess[],
): SandboxHandle {
  sandbox.processes.quiesce();
  const old = sandbox.replaceHandle(handle, network);
  sandbox.touch(context.nowMs);
  freezeIfDue(context, sandbox);
  watchForEnd(context, sandbox, processes);
  return old;
}
