import { randomUUID } from "node:crypto";
import { SandboxerError, type Language } from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { tellEndOf } from "../observing/events/execution-events.ts";
import { Execution, EXECUTION_KEY_PREFIX } from "./execution.ts";
import { codePathOf, INTERPRETERS, needsFile, prepareCode } from "./interpreters.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { Stopwatch } from "../observing/operations/stopwatch.ts";

/** Starts code as a process of its own. One at a time; what the last one left unread is dropped. */
export function startExecution(
  context: ManagerContext,
  sandbox: LiveSandbox,
  language: Language,
  code: string,
): Promise<Execution> {
  return sandbox.queue.run(async () => {
    sandbox.checkRunning();
    if (sandbox.executing) throw new SandboxerError("execution_in_progress", "An execution is already in progress.");
    await sandbox.execution?.release().catch(() => {});
    sandbox.execution = undefined;
    const execution = await start(context, sandbox, language, code);
    sandbox.execution = execution;
    sandbox.unsaved.noteUse(context.nowMs);
    return execution;
  });
}

async function start(
  context: ManagerContext,
  sandbox: LiveSandbox,
  language: Language,
  code: string,
): Promise<Execution> {
  const stopwatch = new Stopwatch(context.options.clock);
  const id = randomUUID();
  const { handle } = sandbox;
  const argv = await prepareCode(handle.files, INTERPRETERS[language], code, id);
  const execution = new Execution(await handle.exec({ key: EXECUTION_KEY_PREFIX + id, argv }));
  const started = { processId: id, kind: "execution", command: code, language } as const;
  tellEndOf(execution, context.executions.started(sandbox, started));
  const onExit = (outcome: "ok" | "error"): void => {
    sandbox.unsaved.noteTurn(context.nowMs);
    sandbox.touch(context.nowMs);
    const { elapsedMs } = stopwatch;
    const { id: sandboxId, facts } = sandbox;
    context.options.observer.operation({ operation: "execute", sandboxId, backend: facts.backend, elapsedMs, outcome });
    if (needsFile(code)) handle.files.remove(codePathOf(id)).catch(() => {});
  };
  execution.exited.then(
    () => onExit("ok"),
    () => onExit("error"),
  );
  return execution;
}
