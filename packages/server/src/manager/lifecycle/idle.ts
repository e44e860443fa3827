import type { ManagerContext } from "../context.ts";
import { destroySandbox } from "./destroy.ts";
import { hasExpired } from "./time-to-live.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { CalledOff, unlessCalledOff, dropSandbox, pauseSandbox } from "./pause.ts";

const LOOK_MS = 200;

/**
 * Wait this long after a failure, and twice as long after each further one: a save may block a sandbox and fill a disk.
 */
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 60_000;

/** A sandbox that could not be paused or ended. */
interface Rest {
  readonly untilMs: number;
  readonly ms: number;
}

/** Pauses or ends sandboxes that are idle or expired. Returns a function that stops it. */
export function reapIdleSandboxes(context: ManagerContext): () => void {
  const busy = new Set<LiveSandbox>();
  const rests = new WeakMap<LiveSandbox, Rest>();
  const timer = setInterval(() => {
    if (context.draining || context.durable.ownership.instances.frozen) return;
    for (const sandbox of context.sandboxes.values()) {
      if (busy.has(sandbox) || (rests.get(sandbox)?.untilMs ?? 0) > context.nowMs) continue;
      const cause = dueFor(context, sandbox);
      if (cause === undefined) continue;
      busy.add(sandbox);
      const rested = reap(context, sandbox, cause).then(
        () => void rests.delete(sandbox),
        (error: unknown) => {
          const ms = Math.min((rests.get(sandbox)?.ms ?? FIRST_REST_MS / 2) * 2, LONGEST_REST_MS);
          rests.set(sandbox, { untilMs: context.nowMs + ms, ms });
          throw error;
        },
      );
      context.inBackground(
        "end of an idle sandbox",
        rested.finally(() => busy.delete(sandbox)),
      );
    }
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Why a sandbox is to be paused or ended now, if it is. */
function dueFor(context: ManagerContext, sandbox: LiveSandbox): "expired" | "idle" | undefined {
  if (sandbox.state === "running" && hasExpired(context, sandbox.facts.about.expires_at)) return "expired";
  return sandbox.isIdle(context.nowMs) ? "idle" : undefined;
}

/** An expired sandbox is saved with its executions as far as possible, unless it is to be deleted. */
async function reap(context: ManagerContext, sandbox: LiveSandbox, cause: "expired" | "idle"): Promise<void> {
  const lastCheck = (): void => {
    if (dueFor(context, sandbox) !== cause) throw new CalledOff();
  };
  const { durable, facts } = sandbox;
  if (cause === "expired" && facts.about.on_expiry === "delete") {
    const { client } = sandbox;
    client?.notify({ type: "deleting", cause });
    await unlessCalledOff(destroySandbox(context, sandbox, { lastCheck }));
    client?.notify({ type: "deleted", cause });
    return;
  }
  const save = cause === "expired" ? durable : facts.flags.enable_idle_timeout_auto_checkpoint;
  await unlessCalledOff((save ? pauseSandbox : dropSandbox)(context, sandbox, cause, { lastCheck }));
}
