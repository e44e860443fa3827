import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { CalledOff, unlessCalledOff } from "./called-off.ts";
import { dropFor, saveFor } from "./put-down.ts";

const LOOK_MS = 200;

/** After a failure that long, and twice as long after each one more: a save may hold a sandbox up and fill a disk. */
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 60_000;

/** Of a sandbox that could not be put down. */
interface Rest {
  readonly untilMs: number;
  readonly ms: number;
}

/** Puts down sandboxes that nobody uses, or whose time is over. Gives a function that stops it. */
export function reapIdleSandboxes(context: ManagerContext): () => void {
  const busy = new Set<LiveSandbox>();
  const rests = new WeakMap<LiveSandbox, Rest>();
  const timer = setInterval(() => {
    if (context.draining || context.options.durable?.ownership.frozen === true) return;
    for (const sandbox of context.sandboxes.values()) {
      if (busy.has(sandbox) || (rests.get(sandbox)?.untilMs ?? 0) > context.nowMs) continue;
      const expired = isExpired(context, sandbox);
      if (!expired && !sandbox.isIdle(context.nowMs)) continue;
      busy.add(sandbox);
      const reaped = expired ? retire(context, sandbox) : reap(context, sandbox);
      const rested = reaped.then(
        () => void rests.delete(sandbox),
        (error: unknown) => {
          const ms = Math.min((rests.get(sandbox)?.ms ?? FIRST_REST_MS / 2) * 2, LONGEST_REST_MS);
          rests.set(sandbox, { untilMs: context.nowMs + ms, ms });
          throw error;
        },
      );
      context.behind(
        "end of an idle sandbox",
        rested.finally(() => busy.delete(sandbox)),
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

function isExpired({ options }: ManagerContext, { state, facts }: LiveSandbox): boolean {
  const { expires_at } = facts.about;
  return state === "running" && expires_at !== null && Date.parse(expires_at) <= options.clock.wallMs();
}

/** A sandbox whose time is over stops, with what executes. What can be saved is saved: only `expire` destroys it. */
async function retire(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  const lastLook = (): void => {
    if (!isExpired(context, sandbox)) throw new CalledOff();
  };
  await unlessCalledOff((sandbox.durable ? saveFor : dropFor)(context, sandbox, "expired", lastLook));
}
