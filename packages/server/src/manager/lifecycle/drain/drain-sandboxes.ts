import { asSandboxerError, SandboxerError, type SandboxState } from "@sandboxer/protocol";
import type { ManagerContext } from "../../context.ts";
import type { LiveSandbox } from "../../live-sandbox.ts";
import { offerToPeers } from "../../ownership/offer-to-peers.ts";
import { dropSandbox } from "../pause.ts";
import { Drain, type UnsavedSandbox } from "./drain.ts";
import { endUnsaved, saveBeforeTheEnd } from "./save-before-the-end.ts";

/** How long sandboxes that are being created may take to start; then they are cancelled. */
const CREATION_MS = 5_000;

/**
 * Drains all sandboxes: saves the durable ones with their executions and ends the others. New ones are refused. Returns
 * the sandboxes that the store did not accept in time.
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

/** Drains one sandbox. Every path ends without a copy of it on this server. */
async function leave(context: ManagerContext, drain: Drain, sandbox: LiveSandbox): Promise<UnsavedSandbox | undefined> {
  const places = await drain.placesFor(sandbox);
  const giveBack = await places.take();
  try {
    // Work in progress comes first; after a save there may be nothing left to do. A pause that waits for the store is
    // called off, and the sandbox is saved here.
    await drain.untilFree(sandbox);
    if (sandbox.state !== "running" && sandbox.state !== "saving") return undefined;
    if (sandbox.durable) {
      const outcome = await saveBeforeTheEnd(context, drain, sandbox, giveBack);
      // Others may be saved meanwhile.
      giveBack();
      if (outcome === "saved") await drain.unlessLate(handOver(context, sandbox));
      return typeof outcome === "string" ? undefined : outcome;
    }
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

/** Lets a saved sandbox continue on another server. If none accepts it, it stays paused. */
async function handOver(context: ManagerContext, { id: sandboxId, epoch, facts }: LiveSandbox): Promise<void> {
  // Another server would need the client's key; and the drain has disconnected the client.
  if (facts.about.encryption?.held_by === "client" || facts.flags.on_disconnect === "checkpoint") return;
  const left = { sandboxId, epoch, from: context.durable.ownership.instanceId, reason: "drain" } as const;
  const offered = async (): Promise<void> => {
    const head = await context.storedHead(sandboxId);
    if (head !== undefined) await offerToPeers(context, left, head);
  };
  await context.reported("handoff of a drained sandbox", offered());
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
