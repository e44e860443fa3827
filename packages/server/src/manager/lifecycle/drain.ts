import { SandboxerError, type SandboxState } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { dropSandbox, pauseSandbox } from "./pause.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

/** How many sandboxes are saved at once: more would only share the same disk. */
const AT_ONCE = 4;

/** How long those that are being made have to come to run; then they are called off. */
const CREATION_MS = 5_000;

/** Puts every sandbox down: saves what is durable, with what executes, and ends the rest. New ones are refused. */
export async function drainSandboxes(context: ManagerContext): Promise<void> {
  context.draining = true;
  await waitForStarting(context);
  const waiting = [...context.sandboxes.values()];
  const work = async (): Promise<void> => {
    for (let sandbox = waiting.pop(); sandbox !== undefined; sandbox = waiting.pop()) await putDown(context, sandbox);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await Promise.all(context.background);
}

async function putDown(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  try {
    // A save that is under way comes first; after it there may be nothing left to do.
    await sandbox.queue.run(async () => {});
    if (sandbox.state !== "running") return;
    if (sandbox.durable) await pauseSandbox(context, sandbox, "drain");
    else await dropSandbox(context, sandbox, "drain");
  } catch (error) {
    context.options.observer.problem("a sandbox could not be put down", { sandboxId: sandbox.id, error });
    await giveUp(context, sandbox);
  }
}

/** Ends a copy that could not be saved: nobody must wait for it. Its ownership ends with this server's. */
async function giveUp(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  if (sandbox.state === "gone") return;
  sandbox.moveTo("gone");
  await context.reported("end of a sandbox that could not be put down", sandbox.handle.destroy());
}

async function waitForStarting(context: ManagerContext): Promise<void> {
  const inState = (state: SandboxState): LiveSandbox[] =>
    [...context.sandboxes.values()].filter((sandbox) => sandbox.state === state);
  const endMs = context.nowMs + CREATION_MS;
  while (inState("creating").length > 0 || inState("restoring").length > 0) {
    if (context.nowMs >= endMs) {
      const reason = new SandboxerError("draining", "The server is shutting down.");
      for (const sandbox of inState("creating")) void sandbox.abortCreation(reason);
    }
    await context.options.clock.sleep(20);
  }
}
