import type { ManagerContext } from "../context.ts";
import { tellEndOf } from "../observing/events/execution-events.ts";
import type { Execution } from "./execution.ts";
import { untilThawed } from "../ownership/freeze.ts";
import { codePathOf } from "./interpreters.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { Stopwatch } from "../observing/operations/stopwatch.ts";
import type { ManagedProcess, ProcessHooks } from "./managed-process.ts";
import type { ProcessTraits } from "./process-key.ts";

/** What a process of a sandbox needs of its surroundings. */
export function hooksFor(context: ManagerContext, sandbox: LiveSandbox): (traits: ProcessTraits) => ProcessHooks {
  const { clock, observer } = context.options;
  const { handle } = sandbox;
  return ({ id, codeFile }) => {
    const stopwatch = new Stopwatch(clock);
    return {
      hold: () => untilThawed(context, sandbox),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      onExit: (outcome) => {
        sandbox.unsaved.noteTurn(context.nowMs);
        sandbox.touch(context.nowMs);
        const { id: sandboxId, facts } = sandbox;
        const { elapsedMs } = stopwatch;
        observer.operation({ operation: "execute", sandboxId, backend: facts.backend, elapsedMs, outcome });
        if (outcome === "ok" && codeFile) handle.files.remove(codePathOf(id)).catch(() => {});
      },
    };
  };
}

/** The processes that a sandbox has brought along are known here from its first moment on. */
export async function adoptProcesses(context: ManagerContext, sandbox: LiveSandbox): Promise<void> {
  // As it was when it came: what is started from now on is no such process.
  const { execution, processes } = sandbox;
  const tell = (process: Execution | ManagedProcess): void => {
    if (process.running) tellEndOf(process, context.executions.continued(sandbox, process.id));
  };
  if (execution !== undefined) tell(execution);
  processes.sync(await sandbox.handle.processes(), hooksFor(context, sandbox));
  for (const process of processes.all) if (process.command === null) tell(process);
}
