import { SandboxerError } from "@sandboxer/protocol";
import { live } from "../live-sandbox.ts";
import type { ManagedProcess } from "../processes/managed-process.ts";
import type { OutputShare } from "../processes/output-budget.ts";
import { signalName } from "../processes/signals.ts";
import { Room } from "../room.ts";
import type { ProcessContext } from "../room-contexts.ts";
import type { Sandbox } from "../sandbox.ts";
import { createContext, defaultContext, deleteContext, getContext, listContexts, restartContext } from "./contexts.ts";
import { followCell, interruptCell, runCell, type Cell, type CellEvent, type CellRequest } from "./run-cell.ts";

/**
 * The code interpreters of a sandbox. A context is a process with a driver of ours (packages/server/drivers), so it is
 * saved, forked and moved with its sandbox; its key has its facts, so that every server finds it again.
 */
export class InterpreterVerbs extends Room<ProcessContext> {
  readonly create = this.verbOn(createContext);
  /** Starts it if it does not run. */
  readonly default = this.verbOn(defaultContext);
  readonly list = this.verbOn(listContexts);
  readonly get = this.verbOn(getContext);
  readonly restart = this.verbOn(restartContext);
  readonly delete = this.verbOn(deleteContext);

  run(sandbox: Sandbox, interpreter: ManagedProcess, request: CellRequest): Cell {
    checkRuns(interpreter);
    return runCell(this.context, live(sandbox), interpreter, request);
  }

  follow(
    interpreter: ManagedProcess,
    cell: { readonly id: string; readonly from: number | undefined; readonly signal: AbortSignal },
  ): AsyncIterable<CellEvent> {
    return followCell(interpreter, cell);
  }

  interrupt(interpreter: ManagedProcess): void {
    interruptCell(interpreter);
  }

  /** Memory for a collected response. */
  openShare(): OutputShare {
    return this.context.collected.open();
  }
}

function checkRuns({ exit, id }: ManagedProcess): void {
  if (exit === undefined) return;
  const how = exit.signal === undefined ? `with exit code ${exit.code}` : `by ${signalName(exit.signal)}`;
  throw new SandboxerError(
    "wrong_state",
    `The interpreter of this context has ended, ${how}. Its variables are lost.`,
    {
      hint: `Restart it with POST …/contexts/${id}/restart.`,
      details: { state: "exited", context_id: id },
    },
  );
}
