import type { SandboxProcess } from "../../backends/backend.ts";
import type { ProcessContext } from "../room-contexts.ts";
import { tellEndOf } from "../observing/events/execution-events.ts";
import { untilThawed } from "../ownership/freeze.ts";
import { ContextActivity } from "../interpreter/context-activity.ts";
import { frameReaderOf } from "../interpreter/languages.ts";
import { removeCode } from "./interpreters.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { networkHint } from "../network/network-hint.ts";
import { Stopwatch } from "../observing/operations/stopwatch.ts";
import type { ManagedProcess, ProcessHooks } from "./managed-process.ts";
import type { ContextFacts, ProcessTraits } from "./process-key.ts";
import { rootHint } from "./root-hint.ts";

/** The services of the sandbox for one of its processes. */
export function hooksFor(context: ProcessContext, sandbox: LiveSandbox): (traits: ProcessTraits) => ProcessHooks {
  const { clock, observer } = context.options;
  const { handle } = sandbox;
  const turn = (): void => {
    sandbox.unsaved.noteTurn(context.nowMs);
    sandbox.touch(context.nowMs);
  };
  return ({ id, codeFile, context: facts }) => {
    const stopwatch = new Stopwatch(clock);
    const refusedBefore = sandbox.network?.refusals.total ?? 0;
    return {
      isLeaving: () => sandbox.isLeaving,
      hold: () => untilThawed(context, sandbox),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      hint: (outputTail) => networkHint(sandbox, refusedBefore, outputTail) ?? rootHint(sandbox.id, outputTail),
      ...(facts === undefined ? {} : { activity: newActivity(facts, turn) }),
      onExit: (outcome) => {
        turn();
        const { id: sandboxId } = sandbox;
        const { elapsedMs } = stopwatch;
        observer.operation({ operation: "execute", sandboxId, backend: sandbox.facts.backend, elapsedMs, outcome });
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
    if (!process.running) continue;
    tellEndOf(process, context.executions.continued(sandbox, process.id));
    if (process.activity !== undefined) void recallCell(process, process.activity);
  }
}

/** A restored interpreter may be in the middle of a cell. The output that the sandbox kept says so. */
async function recallCell(process: ManagedProcess, activity: ContextActivity): Promise<void> {
  const { chunks } = await process.look(0).catch(() => ({ chunks: [] }));
  const { context: facts } = process.traits;
  if (facts === undefined) return;
  const before = newActivity(facts, () => {});
  for (const chunk of chunks) before.see(chunk);
  if (before.cell !== undefined) activity.recall(before.cell);
}

function newActivity({ language }: ContextFacts, onEnd: () => void): ContextActivity {
  return new ContextActivity(onEnd, () => frameReaderOf(language));
}
