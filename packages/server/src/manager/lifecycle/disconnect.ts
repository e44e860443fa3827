import { CalledOff, unlessCalledOff, pauseSandbox } from "./pause.ts";
import type { SandboxClient } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** The client has gone away. What executes goes on; a sandbox that is to be saved then is saved once nothing does. */
export function detachClient(context: ManagerContext, sandbox: LiveSandbox, client: SandboxClient): void {
  if (!sandbox.detach(client)) return;
  sandbox.touch(context.nowMs);
  if (sandbox.facts.flags.on_disconnect !== "checkpoint") return;
  context.inBackground("pause after a disconnect", pauseWhenQuiet(context, sandbox));
}

async function pauseWhenQuiet(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  // Somebody may have come back meanwhile, started something, or ended the sandbox.
  const lastCheck = (): void => {
    const busy = sandbox.client !== undefined || isUsed(sandbox);
    if (busy || sandbox.state !== "running") throw new CalledOff();
  };
  do {
    await sandbox.processes.quiet();
    await sandbox.unheld();
    await unlessCalledOff(pauseSandbox(context, sandbox, "disconnect", { lastCheck }));
    // What was started meanwhile over HTTP has no client that would go away again.
  } while (sandbox.client === undefined && sandbox.state === "running" && isUsed(sandbox));
}

/** By what it runs, or by what goes in or out. */
function isUsed({ processes, held }: LiveSandbox): boolean {
  return processes.running || held;
}
