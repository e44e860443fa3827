import { CalledOff, unlessCalledOff, pauseSandbox } from "./pause.ts";
import type { SandboxClient } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/**
 * Handles a client that disconnected. Executions keep running; a sandbox that is saved on disconnect is saved once
 * nothing executes.
 */
export function detachClient(context: ManagerContext, sandbox: LiveSandbox, client: SandboxClient): void {
  if (!sandbox.detach(client)) return;
  sandbox.touch(context.nowMs);
  if (sandbox.facts.flags.on_disconnect !== "checkpoint") return;
  context.inBackground("pause after a disconnect", pauseWhenQuiet(context, sandbox));
}

async function pauseWhenQuiet(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  // Meanwhile a client may have attached, started something, or ended the sandbox.
  const lastCheck = (): void => {
    const busy = sandbox.client !== undefined || isUsed(sandbox);
    if (busy || sandbox.state !== "running") throw new CalledOff();
  };
  do {
    await sandbox.processes.quiet();
    await sandbox.unheld();
    await unlessCalledOff(pauseSandbox(context, sandbox, "disconnect", { lastCheck }));
    // Executions that were started over HTTP meanwhile have no client that would disconnect again.
  } while (sandbox.client === undefined && sandbox.state === "running" && isUsed(sandbox));
}

/** Whether the sandbox is used by executions or transfers. */
function isUsed({ processes, held }: LiveSandbox): boolean {
  return processes.working || held;
}
