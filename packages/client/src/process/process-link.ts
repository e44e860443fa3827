import type { ProcessAction, ProcessEvent } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { SandboxCalls } from "../sandbox-calls.ts";
import { anySignal, pause } from "../wire/abort.ts";
import { errorOfFields, isSandboxerError } from "../wire/errors.ts";
import { AttachSocket } from "./attach-socket.ts";
import type { decodeFrame, OutputChunk } from "./frames.ts";
import { SilenceWatch } from "./silence-watch.ts";
import { StdinQueue } from "./stdin-queue.ts";

export interface ExitStatus {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
}

export interface LinkOptions {
  readonly calls: SandboxCalls;
  readonly token: string | undefined;
  readonly processId: string;
  /** Where to begin; absent: with what no reader has acknowledged. */
  readonly offset: number | undefined;
  readonly pty: boolean;
  /** It never waits for a reader, so that one who is slow misses output. */
  readonly detached: boolean;
  readonly reconnectMs: number;
  readonly silenceMs: number;
}

type SocketEnd = "exit" | "moving" | "lost" | "detached";

/** Acknowledged in steps, so that a talkative program costs few messages. */
const ACKNOWLEDGE_BYTES = 64 * 1024;

/**
 * The connection to one process, which comes back by itself: after a drop, a restart of the server or a move of the
 * sandbox it attaches again with the offset of what it has, wherever the sandbox is then. What was not handed to the
 * reader is not acknowledged, so that nothing is lost that the reader has not seen.
 */
export class ProcessLink {
  readonly stdin: StdinQueue;
  readonly #options: LinkOptions;
  readonly #end = new AbortController();
  readonly #queue: OutputChunk[] = [];
  #started = false;
  #attached = false;
  #progressed = false;
  #socket: AttachSocket | undefined;
  #watch: SilenceWatch | undefined;
  #wake: () => void = () => {};
  /** The end of what has come; of what the reader has taken; of what the server was told. */
  #received: number | undefined;
  #taken: number;
  #acknowledged: number;
  #exit: ExitStatus | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.stdin = new StdinQueue(!options.pty);
    this.#received = options.offset;
    this.#taken = this.#acknowledged = options.offset ?? 0;
  }

  /** The end of what the reader has taken. */
  get offset(): number {
    return this.#taken;
  }

  get exit(): ExitStatus | undefined {
    return this.#exit;
  }

  /** The next piece of output; undefined at the end. Asking for the next says that the last one has arrived. */
  async next(): Promise<OutputChunk | undefined> {
    this.start();
    for (;;) {
      const chunk = this.#queue.shift();
      if (chunk !== undefined) {
        this.#acknowledge(this.#taken - this.#acknowledged >= ACKNOWLEDGE_BYTES);
        this.#taken = chunk.offset;
        return chunk;
      }
      this.#acknowledge(this.#taken > this.#acknowledged);
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#exit !== undefined || this.#end.signal.aborted) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Aborts when nothing is to be expected any more: after its end, a failure, a detach. */
  get over(): AbortSignal {
    return this.#end.signal;
  }

  /** Connects, if it has not. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    const { signal } = this.#options.calls.transport;
    const onAbort = (): void => this.fail(signal?.reason);
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true, signal: this.over });
    void this.#run().catch((error: unknown) => {
      if (!this.over.aborted) this.fail(error);
    });
  }

  /** Ends the connection, not the process. */
  detach(): void {
    this.#acknowledge(this.#taken > this.#acknowledged);
    this.#end.abort(new SandboxerError("wrong_state", "The process was detached."));
    this.stdin.fail(new SandboxerError("wrong_state", "The process was detached."));
    this.#socket?.close();
    this.#wake();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.stdin.fail(
      isSandboxerError(error) ? error : new SandboxerError("internal", "The process is not followed any more."),
    );
    this.#end.abort(error);
    this.#socket?.close();
    this.#wake();
  }

  async #run(): Promise<void> {
    let failures = 0;
    let lastSeenMs = performance.now();
    while (!this.#end.signal.aborted) {
      this.#attached = this.#progressed = false;
      const end = await this.#connect();
      if (end === "exit" || end === "detached") return;
      if (this.#attached) [failures, lastSeenMs] = [0, performance.now()];
      failures += 1;
      if (this.#options.calls.isPutDown) throw this.#putDown();
      if (failures > 1 || end === "lost") await pause(this.#delayMs(failures), this.#end.signal);
      await this.#locate(lastSeenMs);
    }
  }

  /** One socket, from its opening to its end. */
  async #connect(): Promise<SocketEnd> {
    const { calls, token, processId } = this.#options;
    const seen: { end: SocketEnd; error?: SandboxerError } = { end: "lost" };
    const socket = new AttachSocket(
      { calls, token, processId, offset: this.#received },
      {
        output: (frame) => {
          this.#watch?.heard();
          this.#output(frame);
        },
        event: (event) => {
          this.#watch?.heard();
          if (event.event === "error") seen.error = errorOfFields(event);
          else seen.end = this.#event(event, socket) ?? seen.end;
        },
      },
    );
    this.#socket = socket;
    const watch = new SilenceWatch(this.#options, () => this.#received, socket);
    this.#watch = watch;
    try {
      await socket.closed;
    } finally {
      watch.stop();
      this.#socket = undefined;
      this.stdin.disconnected(seen.end !== "lost");
    }
    if (this.#end.signal.aborted) return "detached";
    if (seen.error === undefined) return seen.end;
    if (this.#options.calls.isPutDown) throw this.#putDown();
    if (await this.#options.calls.recover(seen.error, this.#end.signal)) return "moving";
    throw seen.error;
  }

  #event(event: Exclude<ProcessEvent, { event: "error" }>, socket: AttachSocket): SocketEnd | undefined {
    switch (event.event) {
      case "attached":
        this.#begin(event.offset);
        this.stdin.connected(
          (bytes) => socket.send(bytes),
          () => socket.send({ action: "stdin_close" } satisfies ProcessAction),
        );
        return undefined;
      case "stdin":
        this.stdin.taken(event.bytes);
        return undefined;
      case "moving":
        this.stdin.taken(event.stdin_bytes);
        return "moving";
      case "exit":
        // A reader that was too slow for a detached process was passed over; what is still kept is fetched.
        if (this.#progressed && event.offset > (this.#received ?? 0)) return "moving";
        if (event.offset > (this.#received ?? 0)) this.#miss(event.offset);
        this.#end.abort();
        this.#exit = { exitCode: event.exit_code, signal: event.signal, timedOut: event.timed_out };
        this.stdin.fail(new SandboxerError("wrong_state", "The process has ended."));
        this.#wake();
        return "exit";
    }
  }

  /** Output that older readers have acknowledged may be gone; output that this one waits for may not. */
  #begin(offset: number): void {
    this.#attached = true;
    const first = this.#received === undefined || this.#received === this.#options.offset;
    if (this.#received !== undefined && offset <= this.#received) return;
    if (!first) this.#miss(offset);
    this.#received = offset;
    if (first) this.#taken = this.#acknowledged = offset;
  }

  #output({ stream, start, data }: ReturnType<typeof decodeFrame>): void {
    const received = this.#received ?? start;
    if (start > received) this.#miss(start);
    // What has come twice counts once.
    const repeated = Math.max(0, received - start);
    if (repeated >= data.length) return;
    this.#progressed = true;
    this.#received = start + data.length;
    this.#queue.push({ stream, data: data.subarray(repeated), offset: this.#received });
    this.#wake();
  }

  #miss(start: number): void {
    if (this.#options.detached) return;
    throw new SandboxerError("internal", `The output from ${this.#received ?? 0} to ${start} is gone.`, {
      hint: "Another reader has acknowledged it, or the sandbox went back to an older checkpoint.",
      details: { from: this.#received, to: start },
    });
  }

  #acknowledge(due: boolean): void {
    if (!due || this.#socket?.send({ action: "ack", offset: this.#taken }) !== true) return;
    this.#acknowledged = this.#taken;
  }

  /** Finds out over HTTP where the process is, which wakes the sandbox if need be, and says what is wrong if it is not. */
  async #locate(lastSeenMs: number): Promise<void> {
    const { calls, processId, reconnectMs } = this.#options;
    const signal = anySignal(this.#end.signal, calls.transport.signal);
    for (let failures = 1; ; failures += 1) {
      try {
        await calls.call("getProcess", { params: { id: calls.sandboxId, process_id: processId } }, { signal });
        return;
      } catch (error) {
        const passing = isSandboxerError(error) && error.row.retryable;
        if (!passing || performance.now() - lastSeenMs > reconnectMs) throw error;
        await pause(this.#delayMs(failures), signal);
      }
    }
  }

  #delayMs(failures: number): number {
    return this.#options.calls.transport.backoff.delayMs(failures);
  }

  #putDown(): SandboxerError {
    return new SandboxerError("wrong_state", "The sandbox was put down while a process of it was followed.", {
      hint: "Resume it and attach to the process again, with the offset in the details.",
      details: { state: "stored", process_id: this.#options.processId, offset: this.#taken },
    });
  }
}
