import type { ManagerContext } from "../context.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";

/** Who has a new sandbox while no server runs it. What is saved to the store is found there, whatever its provider keeps. */
export function residenceOf(
  context: ManagerContext,
  { backend, flags }: Pick<SandboxFacts, "backend" | "flags">,
): SandboxFacts["residence"] {
  if (flags.enable_checkpoint) return "store";
  return context.backend(backend).capabilities.outlivesServer ? "provider" : "store";
}

/**
 * Ends the copy here and gives the sandbox up. One that its provider keeps is stopped there, and one that can be saved is
 * found at its last checkpoint; of any other nothing is left.
 */
export async function leaveSandbox(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  const { handle, facts } = sandbox;
  const kept = facts.residence === "provider";
  let ended = false;
  const ending = (kept ? handle.stop() : handle.destroy()).then(() => (ended = true));
  await context.reported("end of a sandbox", ending);
  await context.reported("release of a sandbox that was left", releaseLeft(context, sandbox, ended));
}

/** For a sandbox whose copy here has ended. `stopped`: whether its provider has it stopped. */
export async function releaseLeft(context: ManagerContext, sandbox: LiveSandbox, stopped: boolean): Promise<void> {
  const { ownership } = context.durable;
  if (sandbox.durable) await ownership.release(sandbox);
  else if (sandbox.facts.residence === "provider") {
    await ownership.release(sandbox, { stoppedAt: stopped ? nowText(context) : null });
  } else await eraseHead(context, sandbox.id);
}

/** Destroys a sandbox of which nothing is stored but its head, which goes too: nobody can bring it back. */
export async function eraseHead(context: ManagerContext, sandboxId: string): Promise<void> {
  const { ownership } = context.durable;
  await ownership.destroy(sandboxId);
  context.inBackground("removal of the head of a sandbox", ownership.erase(sandboxId));
}

/** What another server has now: it is let go where its provider keeps it, and the copy is ended where it is one of several. */
export async function abandonCopy({ handle, facts }: Pick<LiveSandbox, "handle" | "facts">): Promise<void> {
  if (facts.residence === "provider" && handle.letGo !== undefined) return handle.letGo();
  await handle.destroy();
}

function nowText({ options }: ManagerContext): string {
  return new Date(options.clock.wallMs()).toISOString();
}
