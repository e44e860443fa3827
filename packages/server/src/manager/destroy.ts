import type { ManagerContext } from "./context.ts";
import type { LiveSandbox } from "./live-sandbox.ts";
import { Stopwatch } from "./stopwatch.ts";

/** Destroys a sandbox and everything that is stored of it. The tombstone comes first: after it nobody can bring it back. */
export async function destroySandbox(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  const stopwatch = new Stopwatch(context.options.clock);
  const record = { operation: "destroy", sandboxId: sandbox.id, backend: sandbox.facts.backend } as const;
  await sandbox.queue.run(async () => {
    try {
      if (sandbox.durable) await context.durable.ownership.destroy(sandbox.id);
      // A sandbox whose end has failed before is ended again.
      if (sandbox.state !== "destroying") sandbox.moveTo("destroying");
      await sandbox.handle.destroy();
      sandbox.moveTo("gone");
      if (sandbox.durable)
        context.behind("removal of a destroyed sandbox's data", context.durable.checkpoints.removeAll(sandbox.id));
      context.options.observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "ok" });
    } catch (error) {
      context.options.observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "error", error });
      throw error;
    }
  });
}
