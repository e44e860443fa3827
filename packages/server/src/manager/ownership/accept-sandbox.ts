import { asSandboxerError, SandboxerError, type Head } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { notFound } from "../not-found.ts";
import { checkEpoch } from "../running.ts";
import { storedFacts } from "../stored-facts.ts";
import { checkLabels } from "./affinity.ts";
import { attachSandbox } from "./attach.ts";
import { checkMachine, imageOf } from "./fits-here.ts";
import type { LeftSandbox } from "./peers.ts";

/** Somebody else has resumed or deleted it: nothing is left to do. */
const SETTLED: ReadonlySet<string> = new Set([
  "lease_held",
  "lease_lost",
  "sandbox_destroyed",
  "sandbox_in_use",
  "sandbox_not_found",
  "stale_epoch",
]);

/**
 * Reserves room for a sandbox that another server has left, and resumes it when its turn comes. Throws if this server
 * has no room, or cannot run it. A client that asks for the sandbox before that gets it, wherever it asks. `ended` is
 * undefined, or why this server could not resume the sandbox.
 */
export async function acceptSandbox(
  context: ManagerContext,
  left: LeftSandbox,
): Promise<{ readonly ended: Promise<SandboxerError | undefined> }> {
  const { accepted } = context;
  const { sandboxId, epoch } = left;
  const head = await context.storedHead(sandboxId);
  if (head === undefined || head.state === "deleted") throw notFound(sandboxId);
  checkEpoch(head, epoch);
  const facts = storedFacts(sandboxId, head);
  context.backend(facts.backend);
  checkLabels(context.options.labels, facts.about.affinity);
  const image = await imageOf(context, sandboxId, head);
  if (image !== undefined) checkMachine(context, facts.backend, image.manifest);
  if (context.draining) throw new SandboxerError("draining", "The server is shutting down.");
  if (!accepted.waiting.has(sandboxId)) {
    context.checkRoom(facts);
    accepted.waiting.set(sandboxId, facts);
  }
  const ended = accepted.places.run(() => resume(context, left)).finally(() => accepted.waiting.delete(sandboxId));
  context.untilEnded(ended);
  return { ended };
}

async function resume(context: ManagerContext, left: LeftSandbox): Promise<SandboxerError | undefined> {
  const { accepted, events, nowMs, durable } = context;
  const { sandboxId, epoch, from, reason } = left;
  // It stays in the store, and this server asks nobody else: the sandbox is paused, as it was.
  if (context.draining || accepted.restoring.has(sandboxId)) return undefined;
  const seen: { claimed?: Head } = {};
  try {
    checkEpoch(await durable.ownership.read(sandboxId), epoch);
    accepted.restoring.add(sandboxId);
    await attachSandbox(context, {
      sandboxId,
      checkpoint: undefined,
      // Never from a live server: it runs the sandbox for somebody.
      onlyIfFree: true,
      credentials: { token: undefined, trusted: true },
      onRestoring: () => {},
      onOwnership: (step, head) => {
        const sandbox = context.sandboxes.get(sandboxId);
        if (step !== "acquired" || sandbox === undefined) return;
        seen.claimed = head;
        sandbox.isUnused = true;
      },
    });
    const restored_ms = Math.round(context.nowMs - nowMs);
    if (seen.claimed === undefined) return undefined;
    const { epoch: at, owner: to } = seen.claimed;
    const data = { from, to, epoch: at, paused_ms: null, restored_ms, reason };
    events.append({ type: "sandbox.taken_over", sandboxId, data });
    return undefined;
  } catch (thrown) {
    const error = asSandboxerError(thrown);
    if (seen.claimed === undefined && (SETTLED.has(error.code) || context.draining)) return undefined;
    reportNotResumed(context, left, error.message);
    return error;
  } finally {
    accepted.restoring.delete(sandboxId);
  }
}

/** The sandbox stays in the store as its server has left it, and can be resumed as usual. */
export function reportNotResumed(context: ManagerContext, left: LeftSandbox, message: string): void {
  const { sandboxId, from, reason } = left;
  context.events.append({ type: "sandbox.not_resumed", sandboxId, data: { from, reason, message } });
  context.options.observer.problem("a sandbox of another server was not resumed", { sandboxId, reason, message });
}
