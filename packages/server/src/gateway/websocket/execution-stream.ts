import type { ServerEvent } from "@sandboxer/protocol";
import type { Execution } from "../../manager/processes/execution.ts";
import { statusOf, type Outbox } from "./outbox.ts";

/** What a stream asks and tells on its way. */
export interface StreamHooks {
  /** Whether nothing may be sent now, and a promise of when it may again. */
  readonly hold: () => Promise<void> | undefined;
  readonly onOutput: (bytes: number) => void;
}

/** Sends one execution to one client, from an offset until its end. */
export class ExecutionStream {
  readonly execution: Execution;
  /** Settles when the end was sent, or the stream was stopped. Never rejects. */
  readonly finished: Promise<void>;
  readonly #outbox: Outbox;
  readonly #abort = new AbortController();
  readonly #hooks: StreamHooks;
  #killed = false;
  #active = true;
  #sentTo: number | undefined;

  constructor(execution: Execution, outbox: Outbox, from: number | undefined, hooks: StreamHooks) {
    this.execution = execution;
    this.#outbox = outbox;
    this.#hooks = hooks;
    this.finished = this.#run(from).finally(() => (this.#active = false));
  }

  /** Whether the client still waits for the end. */
  get active(): boolean {
    return this.#active;
  }

  /** The offset up to which output was sent; undefined before the first. */
  get sentTo(): number | undefined {
    return this.#sentTo;
  }

  stop(): void {
    this.#active = false;
    this.#abort.abort();
  }

  /** The client hears of the kill once the last output is out. */
  async kill(): Promise<void> {
    this.#killed = true;
    try {
      await this.execution.kill();
    } catch (error) {
      this.#killed = false;
      throw error;
    }
  }

  async #run(from: number | undefined): Promise<void> {
    const { signal } = this.#abort;
    // A string of its own: the id is a slice of another one, and V8 serializes objects with slices at a third of the speed.
    const executionId = Buffer.from(this.execution.id).toString();
    try {
      for await (const { stream, offset, data } of this.execution.output({
        signal,
        ...(from === undefined ? {} : { from }),
      })) {
        await this.#hooks.hold();
        // A save may be under way that counts on nothing more being sent.
        if (signal.aborted) return;
        const end = offset + data.length;
        const event: ServerEvent = { event: stream, data: text(data), execution_id: executionId, offset: end };
        this.#sentTo = end;
        this.#hooks.onOutput(data.length);
        this.#outbox.sendConfirmed([event], () => this.execution.confirm(end));
        await this.#outbox.drained();
        if (signal.aborted) return;
      }
      if (signal.aborted) return;
      const { code } = await this.execution.exited;
      await this.#hooks.hold();
      if (signal.aborted) return;
      const done: ServerEvent = {
        event: "status_update",
        status: statusOf("EXECUTION_DONE"),
        execution_id: this.execution.id,
        exit_code: code ?? null,
      };
      const killed: ServerEvent = { event: "status_update", status: statusOf("EXECUTION_FORCE_KILLED") };
      this.#outbox.sendConfirmed(this.#killed ? [killed, done] : [done], () => this.execution.markDoneDelivered());
    } catch {
      // The sandbox has ended, and its client hears of that from the manager.
    }
  }
}

/** Chunks hold whole characters, unless the bytes are none: then each of those is replaced. */
function text(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}
