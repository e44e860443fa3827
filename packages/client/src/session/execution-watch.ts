import type { Received } from "./connection.ts";

export interface Output {
  readonly stream: "stdout" | "stderr";
  readonly data: string;
  readonly executionId: string;
  /** Pass it to `reconnect` to continue after this. */
  readonly offset: number;
}

export interface ExecutionResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly executionId: string | undefined;
}

type OutputEvent = Extract<Received["event"], { event: "stdout" | "stderr" }>;

/** Collects one execution from the events of a session: from its RUNNING to its DONE. */
export class ExecutionWatch {
  readonly #onOutput: ((output: Output) => void) | undefined;
  readonly #texts = { stdout: "", stderr: "" };
  #executionId: string | undefined;
  #running = false;

  constructor(onOutput: ((output: Output) => void) | undefined) {
    this.#onOutput = onOutput;
  }

  /**
   * Before its RUNNING, a refusal is about this execution and a DONE belongs to an older one. After it only the DONE
   * counts: errors are about other messages, such as a late stdin.
   */
  readonly step = ({ event, failed }: Received): ExecutionResult | undefined => {
    if (event.event === "stdout" || event.event === "stderr") this.#output(event);
    if (failed !== undefined && !this.#running && isRefusal(failed.status)) throw failed.error;
    if (event.event !== "status_update") return undefined;
    if (event.status === "SANDBOX_EXECUTION_RUNNING") {
      this.#running = true;
      this.#executionId = event.execution_id;
    }
    return event.status === "SANDBOX_EXECUTION_DONE" && this.#running ? this.#result(event.exit_code) : undefined;
  };

  /** As {@link step}, if a DONE may come alone: there was nothing left to replay. */
  readonly replayStep = (received: Received): ExecutionResult | undefined => {
    const { event } = received;
    const alone = event.event === "status_update" && event.status === "SANDBOX_EXECUTION_DONE" && !this.#running;
    return alone ? this.#result(event.exit_code) : this.step(received);
  };

  /** The session asked for extensions, so output events have an execution and an offset. */
  #output({ event: stream, data, execution_id: executionId = "", offset = 0 }: OutputEvent): void {
    this.#texts[stream] += data;
    this.#onOutput?.({ stream, data, executionId, offset });
  }

  #result(exitCode: number | null | undefined): ExecutionResult {
    return { ...this.#texts, exitCode: exitCode ?? null, executionId: this.#executionId };
  }
}

function isRefusal(status: string | undefined): boolean {
  return status === "SANDBOX_EXECUTION_ERROR" || status === "SANDBOX_EXECUTION_UNSUPPORTED_LANGUAGE_ERROR";
}
