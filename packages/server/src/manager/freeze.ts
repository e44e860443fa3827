import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";

/** How often one who waits for the thaw looks at the clock: a stall of this process may have hidden it. */
const LOOK_MS = 50;

/**
 * Holds sandboxes still while this server cannot prove that it is alive: others may believe that it is dead, and nobody
 * but one may let a sandbox run.
 */
export class Freezer {
  readonly #context: ManagerContext;
  readonly #paused = new Set<LiveSandbox>();

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  freeze(sandboxIds: readonly string[]): void {
    for (const sandboxId of sandboxIds) {
      const sandbox = this.#context.sandboxes.get(sandboxId);
      // A sandbox that is being saved is silent already, and its image is not published before the thaw.
      if (sandbox?.state !== "running" || this.#paused.has(sandbox)) continue;
      this.#paused.add(sandbox);
      this.#context.behind("freeze of a sandbox", sandbox.handle.pause());
    }
  }

  thaw(sandboxIds: readonly string[]): void {
    for (const sandboxId of sandboxIds) {
      const sandbox = this.#context.sandboxes.get(sandboxId);
      if (sandbox === undefined || !this.#paused.delete(sandbox)) continue;
      this.#context.behind("thaw of a sandbox", sandbox.handle.resume());
    }
  }
}

/** Whether nothing of a sandbox may be heard or changed now. By the clock, so that it is true right after a stall. */
export function isFrozen(context: ManagerContext, sandbox: LiveSandbox): boolean {
  return sandbox.durable && sandbox.state === "running" && context.options.durable?.ownership.frozen === true;
}

export async function untilThawed(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  while (isFrozen(context, sandbox)) await context.options.clock.sleep(LOOK_MS);
}
