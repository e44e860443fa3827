import { asSandboxerError } from "@sandboxer/protocol";
import type { Cause, SandboxClient } from "./client.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { saveAndRelease } from "./save.ts";

const LOOK_MS = 200;

/** Ends sandboxes that nobody uses. Gives a function that stops it. */
export function reapIdleSandboxes(context: ManagerContext): () => void {
  const busy = new Set<LiveSandbox>();
  const timer = setInterval(() => {
    if (context.draining) return;
    for (const sandbox of context.sandboxes.values()) {
      if (busy.has(sandbox) || !sandbox.isIdle(context.nowMs)) continue;
      busy.add(sandbox);
      context.behind(
        "end of an idle sandbox",
        reap(context, sandbox).finally(() => busy.delete(sandbox)),
      );
    }
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Thrown when the reason for putting a sandbox down has gone before it began. */
class CalledOff extends Error {}

async function reap(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  const lastLook = (): void => {
    if (!sandbox.isIdle(context.nowMs)) throw new CalledOff();
  };
  const { enable_idle_timeout_auto_checkpoint: save } = sandbox.facts.flags;
  await (save ? saveFor : dropFor)(context, sandbox, "idle", lastLook).catch((error: unknown) => {
    if (!(error instanceof CalledOff)) throw error;
  });
}

/** Saves a sandbox for a reason of the server's own. A failure is told to the client; the sandbox stays. */
export async function saveFor(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  lastLook?: () => void,
): Promise<void> {
  let client: SandboxClient | undefined;
  const begin = (): void => {
    lastLook?.();
    client = sandbox.client;
    client?.notify({ type: "saving", cause });
  };
  try {
    await saveAndRelease(context, sandbox, { reason: cause, lastLook: begin });
    client?.notify({ type: "saved", cause });
  } catch (error) {
    sandbox.touch(context.nowMs);
    client?.notify({ type: "save_failed", cause, error: asSandboxerError(error) });
    throw error;
  }
}

/** Ends the copy here. What is stored stays, at its last checkpoint, and is free for others. */
export async function dropFor(
  context: ManagerContext,
  sandbox: LiveSandbox,
  cause: Cause,
  lastLook?: () => void,
): Promise<void> {
  await sandbox.queue.run(async () => {
    lastLook?.();
    if (sandbox.state === "gone") return;
    const { client } = sandbox;
    sandbox.moveTo("destroying");
    client?.notify({ type: "deleting", cause });
    await sandbox.handle.destroy();
    if (sandbox.durable) await context.durable.ownership.release(sandbox.id);
    sandbox.moveTo("gone");
    client?.notify({ type: "deleted", cause });
  });
}
