import { randomUUID } from "node:crypto";
import { SandboxerError, type ContextLanguage } from "@sandboxer/protocol";
import { tellEndOf } from "../observing/events/execution-events.ts";
import { hooksFor } from "../processes/hooks.ts";
import type { ManagedProcess } from "../processes/managed-process.ts";
import { contextTraits, processKey, type ContextFacts } from "../processes/process-key.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import type { ProcessContext } from "../room-contexts.ts";
import { driverOf, noInterpreter } from "./languages.ts";

/** Each one has a process in the sandbox, whose agent keeps 256. */
const MAX_CONTEXTS = 32;

/** A new context, with an id of its own. */
export function createContext(
  context: ProcessContext,
  sandbox: LiveSandbox,
  facts: ContextFacts,
): Promise<ManagedProcess> {
  return inTurn(context, sandbox, () => start(context, sandbox, randomUUID(), facts));
}

/** The default context of a language, whose id is the language. An ended one is started again. */
export function defaultContext(
  context: ProcessContext,
  sandbox: LiveSandbox,
  language: ContextLanguage,
): Promise<{ readonly interpreter: ManagedProcess; readonly fresh: boolean }> {
  const running = find(sandbox, language);
  if (running?.running === true) return Promise.resolve({ interpreter: running, fresh: false });
  return inTurn(context, sandbox, async () => {
    const known = find(sandbox, language);
    if (known?.running === true) return { interpreter: known, fresh: false };
    if (known !== undefined) await end(sandbox, known);
    const facts = { language, workingFolder: undefined };
    return { interpreter: await start(context, sandbox, language, facts), fresh: true };
  });
}

export async function listContexts(context: ProcessContext, sandbox: LiveSandbox): Promise<readonly ManagedProcess[]> {
  await sandbox.processes.sync(sandbox.handle, hooksFor(context, sandbox));
  await sandbox.processes.recalled;
  return sandbox.processes.contexts;
}

export async function getContext(context: ProcessContext, sandbox: LiveSandbox, id: string): Promise<ManagedProcess> {
  const known = find(sandbox, id);
  if (known !== undefined) return known;
  await sandbox.processes.sync(sandbox.handle, hooksFor(context, sandbox));
  const found = find(sandbox, id);
  if (found !== undefined) return found;
  throw new SandboxerError("context_not_found", `The sandbox has no context ${JSON.stringify(id.slice(0, 100))}.`);
}

/** The same context with a new interpreter. */
export function restartContext(context: ProcessContext, sandbox: LiveSandbox, id: string): Promise<ManagedProcess> {
  return inTurn(context, sandbox, async () => {
    const known = await getContext(context, sandbox, id);
    const { context: facts } = known.traits;
    if (facts === undefined) throw new TypeError("A process of contexts has their facts.");
    await end(sandbox, known);
    return start(context, sandbox, id, facts);
  });
}

export async function deleteContext(context: ProcessContext, sandbox: LiveSandbox, id: string): Promise<void> {
  await inTurn(context, sandbox, async () => end(sandbox, await getContext(context, sandbox, id)));
}

function find({ processes }: LiveSandbox, id: string): ManagedProcess | undefined {
  return processes.contexts.find((process) => process.id === id);
}

/** A save must see an interpreter with its program, or not at all. */
function inTurn<Result>(context: ProcessContext, sandbox: LiveSandbox, work: () => Promise<Result>): Promise<Result> {
  return sandbox.queue.run(async () => {
    sandbox.checkRunning();
    await sandbox.processes.sync(sandbox.handle, hooksFor(context, sandbox));
    return work();
  });
}

async function end({ processes }: LiveSandbox, interpreter: ManagedProcess): Promise<void> {
  if (interpreter.activity !== undefined) interpreter.activity.isStopping = true;
  await interpreter.release();
  processes.forget(interpreter);
}

async function start(
  context: ProcessContext,
  sandbox: LiveSandbox,
  id: string,
  facts: ContextFacts,
): Promise<ManagedProcess> {
  const { handle, network, processes } = sandbox;
  if (processes.contexts.length >= MAX_CONTEXTS) {
    throw new SandboxerError("limit_reached", `The sandbox has ${MAX_CONTEXTS} contexts.`, {
      hint: "Delete one with DELETE …/contexts/{context_id}.",
    });
  }
  const { argv, program } = await driverOf(facts.language);
  const traits = contextTraits(id, facts);
  try {
    const started = await handle.exec({
      key: processKey(traits),
      argv,
      env: { ...network?.environmentBeside(sandbox.facts.spec.env, {}) },
      ...(facts.workingFolder === undefined ? {} : { workingFolder: facts.workingFolder }),
    });
    const interpreter = processes.take(started, traits, hooksFor(context, sandbox));
    interpreter.watch();
    interpreter.command = [argv[0] ?? "", "(context)", id];
    interpreter.startedHere = true;
    interpreter.startedAt = new Date(context.options.clock.wallMs()).toISOString();
    sandbox.unsaved.noteUse(context.nowMs);
    const { language } = facts;
    const reported = {
      processId: id,
      kind: "context" as const,
      command: interpreter.command,
      language,
      detached: true,
    };
    tellEndOf(interpreter, context.executions.started(sandbox, reported));
    // It may end at once, for example because its program is too old; its cell then says so.
    await interpreter.writeStdin(program).catch(() => {});
    return interpreter;
  } catch (error) {
    throw noInterpreter(facts.language, error);
  }
}
