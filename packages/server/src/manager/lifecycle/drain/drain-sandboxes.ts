import { asSandboxerError, SandboxerError, type SandboxState } from "@sandboxer/protocol";
import type { ManagerContext } from "../../context.ts";
import type { LiveSandbox } from "../../live-sandbox.ts";
import { dropSandbox } from "../pause.ts";
import { Drain, type UnsavedSandbox } from "./drain.ts";
import { endUnsaved, saveBeforeTheEnd } from "./save-before-the-end.ts";

/** How long those that are being made have to come to run; then they are called off. */
const CREATION_MS = 5_000;

/**
 * Puts every sandbox down: saves what is durable, with what executes, and ends the rest. New ones are refused. Gives the
 * sandboxes that the store has not taken in time.
 */
export async function drainSandboxes(context: ManagerContext): Promise<readonly UnsavedSandbox[]> {
  context.draining = true;
  context.ending.abort();
  const drain = new Drain(context);
  await waitForStarting(context, drain);
  const sandboxes = [...context.sandboxes.values()];
  const unsaved = await Promise.all(sandboxes.map((sandbox) => leave(context, drain, sandbox)));
  await drain.unlessLate(Promise.all(context.background));
  drain.close();
  return unsaved.filter((each) => each !== undefined);
}

/** What becomes of one sandbox. Each way ends with no copy of it here. */
async function leave(context: ManagerContext, drain: Drain, sandbox: LiveSandbox): Promise<UnsavedSandbox | undefined> {
  const places = await drain.placesFor(sandbox);
  const giveBack = await places.take();
  try {
    // A save that is under way comes first; after it there may be nothing left to do.
    await drain.unlessLate(sandbox.queue.run(async () => {}));
    if (sandbox.state !== "running") return undefined;
    if (sandbox.durable) return await saveBeforeTheEnd(context, drain, sandbox, giveBack);
    await drain.unlessLate(dropSandbox(context, sandbox, "drain"));
    return undefined;
  } catch (error) {
    context.options.observer.problem("a sandbox could not be paused", { sandboxId: sandbox.id, error });
    await endUnsaved(context, sandbox);
    const { message: reason } = asSandboxerError(error);
    return sandbox.durable ? { sandboxId: sandbox.id, reason, folder: undefined } : undefined;
  } finally {
    giveBack();
  }
}

async function waitForStarting(context: ManagerContext, drain: Drain): Promise<void> {
  const inState = (state: SandboxState): LiveSandbox[] =>
    [...context.sandboxes.values()].filter((sandbox) => sandbox.state === state);
  const endMs = context.nowMs + CREATION_MS;
  while (!drain.late.aborted && (inState("creating").length > 0 || inState("restoring").length > 0)) {
    if (context.nowMs >= endMs) {
      const reason = new SandboxerError("draining", "The server is shutting down.");
      for (const sandbox of inState("creating")) void sandbox.abortCreation(reason);
    }
    await context.options.clock.sleep(20);
  }
}
