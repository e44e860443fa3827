import {
  ATTACH_WINDOW_BYTES,
  asSandboxerError,
  CloseCode,
  type OutputFrame,
  parseProcessAction,
  type ProcessAction,
  SandboxerError,
} from "@sandboxer/protocol";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import { Moving } from "../../../manager/processes/reader-slot.ts";
import { signalName, signalNumber } from "../../../manager/processes/signals.ts";
import type { ProcessWire } from "./process-wire.ts";
import { StdinFeed } from "./stdin-feed.ts";

const PIECE_BYTES = 64 * 1024;

/** One client with one process. Only acknowledged output is dropped. */
export class ProcessSession {
  readonly #process: ManagedProcess;
  readonly #wire: ProcessWire;
  readonly #stdin: StdinFeed;
  readonly #onOutput: (bytes: number) => void;
  #sent = 0;
  #acknowledged = 0;
  /** Messages of the client are ignored from now on. */
  #stopped = false;
  #wake: () => void = () => {};

  constructor(process: ManagedProcess, wire: ProcessWire, onOutput: (bytes: number) => void) {
    this.#process = process;
    this.#wire = wire;
    this.#stdin = new StdinFeed(process, wire);
    this.#onOutput = onOutput;
    wire.gone.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** Sends the output from an offset until its end, or until there is a reason to stop. */
  async run(offset: number | undefined, onAttached: () => void): Promise<void> {
    const wire = this.#wire;
    try {
      const start = await this.#process.startOf(offset);
      this.#sent = this.#acknowledged = start;
      const { id, pid } = this.#process;
      wire.event({ event: "attached", process_id: id, pid, offset: start });
      onAttached();
      const reading = { from: start, signal: wire.gone, onStop: () => this.#stop() };
      for await (const chunk of this.#process.follow(reading)) await this.#send(chunk);
      if (wire.gone.aborted) return;
      const { code, signal, outputEnd } = await this.#process.exited;
      const { timedOut: timed_out, hint } = this.#process;
      const end = { exit_code: code ?? null, signal: signalName(signal), offset: outputEnd, timed_out, hint };
      wire.event({ event: "exit", ...end });
      wire.close(CloseCode.normal);
      this.#process.told = true;
    } catch (thrown) {
      if (!(thrown instanceof Moving)) return wire.error(asSandboxerError(thrown));
      wire.event({ event: "moving", offset: this.#sent, stdin_bytes: this.#stdin.stop() });
      wire.close(CloseCode.restarting);
    } finally {
      this.#stop();
    }
  }

  /** A frame from the client. */
  handle(data: Buffer, isBinary: boolean): void {
    // The acknowledgement of the end may come after it.
    if (this.#stopped && !this.#process.told) return;
    try {
      if (isBinary) this.#stdin.push(data);
      else this.#act(parseProcessAction(data.toString("utf8")));
    } catch (error) {
      this.#wire.error(asSandboxerError(error));
    }
  }

  #act(action: ReturnType<typeof parseProcessAction>): void {
    switch (action.action) {
      case "malformed":
        throw new SandboxerError("bad_request", action.message);
      case "ack":
        return this.#acknowledge(action.offset);
      case "stdin_close":
        return this.#stdin.close();
      case "resize":
      case "signal":
        void this.#tell(action).catch((error: unknown) => {
          if (this.#process.running && !this.#stopped) this.#wire.error(asSandboxerError(error));
        });
    }
  }

  async #tell(action: Extract<ProcessAction, { action: "resize" | "signal" }>): Promise<void> {
    if (action.action === "resize") await this.#process.resize(action.rows, action.columns);
    else await this.#process.signal(signalNumber(action.signal), "group");
  }

  #acknowledge(offset: number): void {
    if (offset > this.#sent) {
      throw new SandboxerError(
        "bad_request",
        `Only ${this.#sent} bytes of output were sent; offset ${offset} cannot have been received.`,
      );
    }
    if (offset <= this.#acknowledged) return;
    this.#acknowledged = offset;
    this.#process.acknowledge(offset);
    this.#wake();
  }

  async #send({ stream, offset, data }: OutputFrame): Promise<void> {
    for (let start = 0; start < data.length; start += PIECE_BYTES) {
      const piece = data.subarray(start, start + PIECE_BYTES);
      const end = offset + start + piece.length;
      if (this.#process.traits.detached && end - this.#acknowledged > ATTACH_WINDOW_BYTES) {
        // The process must not block: the client misses this part, and its offsets show it.
        this.#process.acknowledge(end);
        continue;
      }
      while (end - this.#acknowledged > ATTACH_WINDOW_BYTES && !this.#stopped) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
      if (this.#stopped) return;
      this.#wire.output({ stream, offset: offset + start, data: piece });
      this.#sent = end;
      this.#onOutput(piece.length);
    }
  }

  #stop(): void {
    this.#stopped = true;
    this.#stdin.stop();
    this.#wake();
  }
}
