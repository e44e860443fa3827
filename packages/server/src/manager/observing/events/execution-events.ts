import type { ProcessExit } from "../../../backends/backend.ts";
import type { Clock } from "../../../support/clock.ts";
import { signalName } from "../../processes/signals.ts";
import type { EventLog } from "./event-log.ts";

export interface StartedExecution {
  readonly processId: string;
  /** An execution of the WebSocket protocol, a process started over HTTP, an interpreter, or a cell of one. */
  readonly kind: "execution" | "process" | "context" | "cell";
  /** Its argv or code; only the beginning is reported. */
  readonly command: string | readonly string[];
  readonly language?: string | undefined;
  readonly pty?: boolean;
  readonly detached?: boolean;
}

/** Reported at the end. Without an exit, the sandbox left this server or ended first. */
export type TellEnd = (exit: ProcessExit | undefined, timedOut?: boolean) => void;

/** Reports the end when it comes. */
export function tellEndOf(
  process: { readonly exited: Promise<ProcessExit>; readonly timedOut?: boolean },
  tell: TellEnd,
): void {
  process.exited.then(
    (exit) => tell(exit, process.timedOut),
    () => tell(undefined),
  );
}

/** This many executions of one sandbox are reported at once, and then per second; the others are counted. */
const BURST = 100;
const PER_SECOND = 20;
const SHOWN_CHARACTERS = 200;

interface Budget {
  left: number;
  filledMs: number;
  omitted: number;
}

/** Reports programs that start and end in sandboxes: each one, up to a rate limit. */
export class ExecutionEvents {
  readonly #clock: Clock;
  readonly #events: EventLog;
  /** By sandbox. */
  readonly #budgets = new WeakMap<object, Budget>();

  constructor(clock: Clock, events: EventLog) {
    this.#clock = clock;
    this.#events = events;
  }

  started(sandbox: { readonly id: string }, execution: StartedExecution): TellEnd {
    const budget = this.#budget(sandbox);
    if (budget.left < 1) {
      budget.omitted += 1;
      return () => {};
    }
    budget.left -= 1;
    const { processId, kind, command, language = null, pty = false, detached = false } = execution;
    const data = { process_id: processId, kind, command: shortened(command), language, pty, detached };
    this.#tell("execution.started", sandbox, data);
    return this.#endOf(sandbox, processId, this.#clock.monotonicMs());
  }

  /** A running execution that the sandbox restored. The sandbox's own limits bound their number. */
  continued(sandbox: { readonly id: string }, processId: string): TellEnd {
    this.#tell("execution.continued", sandbox, { process_id: processId });
    return this.#endOf(sandbox, processId, undefined);
  }

  #endOf(sandbox: { readonly id: string }, process_id: string, startedMs: number | undefined): TellEnd {
    return (exit, timed_out = false) => {
      const elapsed_ms = startedMs === undefined ? null : Math.round((this.#clock.monotonicMs() - startedMs) * 10) / 10;
      const outcome = exit === undefined ? "left" : "exited";
      const end = { exit_code: exit?.code ?? null, signal: signalName(exit?.signal), timed_out };
      this.#tell("execution.ended", sandbox, { process_id, outcome, ...end, elapsed_ms });
    };
  }

  #tell(type: string, sandbox: { readonly id: string }, data: Readonly<Record<string, unknown>>): void {
    const budget = this.#budget(sandbox);
    const { omitted } = budget;
    budget.omitted = 0;
    this.#events.append({ type, sandboxId: sandbox.id, data: { ...data, omitted } });
  }

  #budget(sandbox: object): Budget {
    const nowMs = this.#clock.monotonicMs();
    let budget = this.#budgets.get(sandbox);
    if (budget === undefined) {
      budget = { left: BURST, filledMs: nowMs, omitted: 0 };
      this.#budgets.set(sandbox, budget);
    }
    budget.left = Math.min(BURST, budget.left + ((nowMs - budget.filledMs) / 1000) * PER_SECOND);
    budget.filledMs = nowMs;
    return budget;
  }
}

/** The text may contain anything; clients must treat it as data. */
function shortened(command: string | readonly string[]): string {
  let text = "";
  for (const part of typeof command === "string" ? [command] : command) {
    if (text.length > SHOWN_CHARACTERS) break;
    text += `${text === "" ? "" : " "}${part.slice(0, SHOWN_CHARACTERS + 1)}`;
  }
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
}
