import type { ManagerContext } from "../context.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";
import { inStore } from "../stored-facts.ts";

/** Whether the provider of a sandbox keeps it when this server ends. What is saved to the store is found there. */
export function outlives({ options }: ManagerContext, facts: Pick<SandboxFacts, "backend" | "flags">): boolean {
  if (facts.flags.enable_checkpoint) return false;
  return options.backends.get(facts.backend)?.capabilities.outlivesServer === true;
}

/** Notes a sandbox that will be there after this server, so that the next one finds it. */
export async function noteOutliving(context: ManagerContext, facts: SandboxFacts, stopped: boolean): Promise<void> {
  if (!outlives(context, facts)) return;
  await context.options.records.put(facts.sandboxId, {
    ...inStore(facts),
    stopped_at: stopped ? new Date(context.options.clock.wallMs()).toISOString() : null,
    holder: stopped ? null : context.options.holder,
  });
}

export async function forgetOutliving(context: ManagerContext, facts: SandboxFacts): Promise<void> {
  if (outlives(context, facts)) await context.options.records.remove(facts.sandboxId);
}

/** Ends the copy here. One that its provider keeps is stopped, and can be taken up again; of any other nothing is left. */
export async function leaveSandbox(context: ManagerContext, { handle, facts }: LiveSandbox): Promise<void> {
  if (!outlives(context, facts)) return handle.destroy();
  await handle.stop();
  await noteOutliving(context, facts, true);
}
