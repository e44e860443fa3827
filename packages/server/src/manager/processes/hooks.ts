import type { SandboxProcess } from "../../backends/backend.ts";
import type { ProcessContext } from "../room-contexts.ts";
import { tellEndOf } from "../observing/events/execution-events.ts";
import { untilThawed } from "../ownership/freeze.ts";
import { removeCode } from "./interpreters.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { networkHint } from "../network/network-hint.ts";
import { Stopwatch } from "../observing/operations/stopwatch.ts";
import type { ProcessHooks } from "./managed-process.ts";
import type { ProcessTraits } from "./process-key.ts";

/** What a process needs from its sandbox. */
export function hooksFor(context: ProcessContext, sandbox: LiveSandbox): (traits: ProcessTraits) => ProcessHooks {
  const { clock, observer } = context.options;
  const { handle } = sandbox;
  return ({ id, codeFile }) => {
    const stopwatch = new Stopwatch(clock);
    const refusedBefore = sandbox.network?.refusals.total ?? 0;
    return {
      isLeaving: () => sandbox.isLeaving,
      hold: () => untilThawed(context, sandbox),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      hint: (outputTail) => networkHint(sandbox, refusedBefore, outputTail),
      onExit: (outcome) => {
        sandbox.unsaved.noteTurn(context.nowMs);
        sandbox.touch(context.nowMs);
        const { id: sandboxId, facts } = sandbox;
        const { elapsedMs } = stopwatch;
        observer.operation({ operation: "execute", sandboxId, backend: facts.backend, elapsedMs, outcome });
        if (outcome === "ok" && codeFile) void removeCode(handle, id);
      },
    };
  };
}

/** The processes that a restored sandbox brings along are known from its first moment. */
export function adoptProcesses(
  context: ProcessContext,
  sandbox: LiveSandbox,
  present: readonly SandboxProcess[],
): void {
  const { processes } = sandbox;
  processes.replace(present, hooksFor(context, sandbox));
  for (const process of processes.all) {
    if (process.running) tellEndOf(process, context.executions.continued(sandbox, process.id));
  }
}
