import type { Language, ServerEvent, Status } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Closed, Connection, Received, Step } from "./connection.ts";
import { eventsOf } from "./event-iterator.ts";
import { ExecutionWatch, type ExecutionResult, type Output } from "./execution-watch.ts";

export interface RunOptions {
  /** Called with each piece as it arrives. */
  readonly onOutput?: (output: Output) => void;
  /** Kills the execution; the call then fails with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface ReconnectOptions extends Omit<RunOptions, "signal"> {
  /** The execution that was received, and up to where; absent: what the server considers undelivered. */
  readonly executionId?: string;
  readonly offset?: number;
}

/** A client's session with one sandbox. It ends with `checkpoint`, `destroy`, `close`, or when the server ends it. */
export class SandboxSession {
  readonly id: string;
  /** Returned once, at creation. Anyone who has it can attach. */
  readonly token: string | undefined;
  /** Settles when the session is over, with the close code of the protocol. Never rejects. */
  readonly closed: Promise<Closed>;
  readonly #connection: Connection;
  #following = false;

  constructor(connection: Connection, id: string, token: string | undefined) {
    this.#connection = connection;
    this.id = id;
    this.token = token;
    this.closed = connection.closed;
  }

  /** Runs code as a separate process and waits for its end. A failing program is a result, not an error. */
  async run(language: Language, code: string, { onOutput, signal }: RunOptions = {}): Promise<ExecutionResult> {
    signal?.throwIfAborted();
    const result = this.#follow(new ExecutionWatch(onOutput).step, { language, code });
    const onAbort = (): void => this.#connection.send({ action: "kill_process" });
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const ended = await result;
      signal?.throwIfAborted();
      return ended;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Replays unseen output of the current or last execution, then follows it to its end. */
  async reconnect({ onOutput, executionId, offset }: ReconnectOptions = {}): Promise<ExecutionResult> {
    return this.#follow(new ExecutionWatch(onOutput).replayStep, {
      action: "reconnect",
      ...(executionId === undefined ? {} : { execution_id: executionId }),
      ...(offset === undefined ? {} : { offset }),
    });
  }

  /** Sends text to the running execution. The result shows in the events. */
  stdin(data: string): void {
    this.#connection.send({ event: "stdin", data });
  }

  /** Kills the running execution; the call to `run` ends with its result. */
  async kill(): Promise<void> {
    await this.#ask({ action: "kill_process" }, "SANDBOX_EXECUTION_FORCE_KILLED", [
      "SANDBOX_EXECUTION_FORCE_KILL_ERROR",
    ]);
  }

  /** Saves everything and ends the session; `attach` resumes the sandbox, on this server or another. */
  async checkpoint(): Promise<void> {
    const failures: Status[] = ["SANDBOX_CHECKPOINT_ERROR", "SANDBOX_EXECUTION_IN_PROGRESS_ERROR"];
    await this.#ask({ action: "checkpoint" }, "SANDBOX_CHECKPOINTED", failures);
    await this.closed;
  }

  /** Saves the files under a name, for `filesystem_snapshot_name` of new sandboxes. */
  async snapshotFilesystem(name: string): Promise<void> {
    const failures: Status[] = ["SANDBOX_FILESYSTEM_SNAPSHOT_ERROR"];
    await this.#ask({ action: "snapshot_filesystem", name }, "SANDBOX_FILESYSTEM_SNAPSHOT_CREATED", failures);
  }

  /** Deletes the sandbox and its checkpoints. */
  async destroy(): Promise<void> {
    await this.#ask({ action: "kill_sandbox" }, "SANDBOX_KILLED", ["SANDBOX_KILL_ERROR"]);
    await this.closed;
  }

  /** Disconnects. The sandbox stays, and executions keep running. */
  async close(): Promise<void> {
    this.#connection.close();
    await this.closed;
  }

  /** Calls back with every event of the server; returns a function that stops it. */
  onEvent(listener: (event: ServerEvent) => void): () => void {
    return this.#connection.listen(({ event }) => listener(event));
  }

  /** Every event of the server from now on, until the session is over. */
  events(): AsyncIterableIterator<ServerEvent> {
    return eventsOf((listener) => this.onEvent(listener), this.closed);
  }

  /** One at a time, as on the server: the events of two could not be told apart. */
  async #follow(step: Step<ExecutionResult>, message: object): Promise<ExecutionResult> {
    if (this.#following) throw new SandboxerError("execution_in_progress", "An execution is already in progress.");
    this.#following = true;
    try {
      const result = this.#connection.until(step);
      this.#connection.send(message);
      return await result;
    } finally {
      this.#following = false;
    }
  }

  #ask(message: object, success: Status, failures: readonly Status[]): Promise<true> {
    const answer = this.#connection.until(({ event, failed }: Received) => {
      if (failed?.status !== undefined && failures.includes(failed.status)) throw failed.error;
      return event.event === "status_update" && event.status === success ? (true as const) : undefined;
    });
    this.#connection.send(message);
    return answer;
  }
}
