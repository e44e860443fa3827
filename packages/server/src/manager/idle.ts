import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { CalledOff, unlessCalledOff } from "./called-off.ts";
import { dropFor, saveFor } from "./put-down.ts";

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
