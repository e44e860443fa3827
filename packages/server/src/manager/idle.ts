import { asSandboxerError } from "@sandboxer/protocol";
import type { Cause, SandboxClient } from "./client.ts";
import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { CalledOff, unlessCalledOff } from "./called-off.ts";
import { saveAndRelease } from "./save.ts";

const LOOK_MS = 200;

/** Ends sandboxes that nobody uses. Gives a function that stops it. */
export function reapIdleSandboxes(context: ManagerContext): () => void {
  const busy = new Set<LiveSandbox>();
  const timer = setInterval(() => {
    if (context.draining || context.options.durable?.ownership.frozen === true) return;
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

async function reap(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  const lastLook = (): void => {
    if (!sandbox.isIdle(context.nowMs)) throw new CalledOff();
  };
  const { enable_idle_timeout_auto_checkpoint: save } = sandbox.facts.flags;
  await unlessCalledOff((save ? saveFor : dropFor)(context, sandbox, "idle", lastLook));
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
    const prepare = async (): Promise<void> => client?.quiesce();
    await saveAndRelease(context, sandbox, { reason: cause, lastLook: begin, prepare });
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
    await context.reported("end of a sandbox", sandbox.handle.destroy());
    if (sandbox.durable) {
      await context.reported("release of a sandbox that was dropped", context.durable.ownership.release(sandbox.id));
    }
    sandbox.moveTo("gone");
    client?.notify({ type: "deleted", cause });
  });
}
