import type { ManagerContext } from "../context.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";

/**
 * The keeper of a new sandbox while no server runs it. A sandbox that is saved to the store is found there, even if its
 * provider keeps it too.
 */
export function residenceOf(
  context: ManagerContext,
  { backend, flags }: Pick<SandboxFacts, "backend" | "flags">,
): SandboxFacts["residence"] {
  if (flags.enable_checkpoint) return "store";
  return context.backend(backend).capabilities.outlivesServer ? "provider" : "store";
}

/**
 * Ends the local copy and releases the sandbox. A provider-kept sandbox is stopped there, and a checkpointed one stays
 * at its last checkpoint; of any other nothing is left.
 */
export async function leaveSandbox(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  const { handle, facts } = sandbox;
  const kept = facts.residence === "provider";
  let ended = false;
  const ending = (kept ? handle.stop() : handle.destroy()).then(() => (ended = true));
  await context.reported("end of a sandbox", ending);
  await context.reported("release of a sandbox that was left", releaseLeft(context, sandbox, ended));
}

/** For a sandbox whose local copy has ended. `stopped`: whether its provider has stopped it. */
export async function releaseLeft(context: ManagerContext, sandbox: LiveSandbox, stopped: boolean): Promise<void> {
  const { ownership } = context.durable;
  if (sandbox.durable) await ownership.release(sandbox);
  else if (sandbox.facts.residence === "provider") {
    await ownership.release(sandbox, { stoppedAt: stopped ? nowText(context) : null });
  } else await eraseHead(context, sandbox.id);
}

/** Deletes a sandbox of which only the head is stored; the head is removed too, so it cannot be restored. */
export async function eraseHead(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  await ownership.destroy(sandboxId);
  context.inBackground("removal of the head of a sandbox", ownership.erase(sandboxId));
}

/** Releases a sandbox that another server owns now: at a provider it is let go, and a local copy is ended. */
export async function abandonCopy({ handle, facts }: Pick<LiveSandbox, "handle" | "facts">): Promise<void> {
  if (facts.residence === "provider" && handle.letGo !== undefined) return handle.letGo();
  await handle.destroy();
}

function nowText({ options }: ManagerContext): string {
  return new Date(options.clock.wallMs()).toISOString();
}
