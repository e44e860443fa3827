import type { ProcessAction, ProcessEvent } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { SandboxCalls } from "../sandbox-calls.ts";
import { anySignal, pause } from "../wire/abort.ts";
import { errorOfFields, isSandboxerError } from "../wire/errors.ts";
import { AttachSocket } from "./attach-socket.ts";
import type { OutputChunk } from "./frames.ts";
import { OutputQueue } from "./output-queue.ts";
import { SilenceWatch } from "./silence-watch.ts";
import { StdinQueue } from "./stdin-queue.ts";

export interface ExitStatus {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  /** The hint for its failure, such as a missing network; null: nothing is known. */
  readonly hint: string | null;
}

/**
 * The state of the connection to a process: `attached` while output and stdin flow, `moving` while its sandbox is saved
 * or moved, `lost` if the connection broke. After the last two it is restored automatically, or reading fails.
 */
export type ConnectionState = "attached" | "moving" | "lost";

export interface WatchOptions {
  /** Called for each change of the connection to the process, for display. */
  readonly onConnection?: ((state: ConnectionState) => void) | undefined;
}

export interface LinkOptions extends WatchOptions {
  readonly calls: SandboxCalls;
  readonly token: string | undefined;
  readonly processId: string;
  /** Where to begin; absent: with unacknowledged output. */
  readonly offset: number | undefined;
  readonly pty: boolean;
  /** It never waits for a reader, so that a slow one misses output. */
  readonly detached: boolean;
  readonly reconnectMs: number;
  readonly silenceMs: number;
}

type SocketEnd = "exit" | "moving" | "lost" | "detached";

/** Acknowledged in steps, so that a talkative program costs few messages. */
const ACKNOWLEDGE_BYTES = 64 * 1024;
/** The limit of unread output before another socket is opened. */
const MAX_QUEUED_BYTES = 256 * 1024;

/**
 * The connection to one process, which is restored automatically: after a drop, a restart of the server or a handoff it
 * attaches again with its offset, wherever the sandbox is then. Output that was not passed to the reader is not
 * acknowledged, so that nothing is lost.
 */
export class ProcessLink {
  readonly stdin: StdinQueue;
  readonly #options: LinkOptions;
  readonly #end = new AbortController();
  readonly #queue: OutputQueue;
  #started = false;
  #attached = false;
  #progressed = false;
  #told: ConnectionState | undefined;
  #socket: AttachSocket | undefined;
  #watch: SilenceWatch | undefined;
  #wake: () => void = () => {};
  #drained: () => void = () => {};
  #exit: ExitStatus | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.stdin = new StdinQueue(!options.pty);
    this.#queue = new OutputQueue(options.offset, options.detached);
  }

  /** The end of the output that was read. */
  get offset(): number {
    return this.#queue.taken;
  }

  get exit(): ExitStatus | undefined {
    return this.#exit;
  }

  /** The next piece of output; undefined at the end. Requesting the next one acknowledges the last. */
  async next(): Promise<OutputChunk | undefined> {
    this.start();
    for (;;) {
      this.#acknowledge(this.#queue.isEmpty ? 1 : ACKNOWLEDGE_BYTES);
      const chunk = this.#queue.shift();
      if (this.#queue.isEmpty) this.#drained();
      if (chunk !== undefined) return chunk;
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#exit !== undefined || this.over.aborted) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Aborts when nothing more is expected: after its end, a failure, or a detach. */
  get over(): AbortSignal {
    return this.#end.signal;
  }

  /** Connects, if not connected. */
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
    this.#acknowledge(1);
    this.#end.abort(new SandboxerError("wrong_state", "The process was detached."));
    this.stdin.fail(new SandboxerError("wrong_state", "The process was detached."));
    this.#socket?.close();
    this.#wake();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.stdin.fail(
      isSandboxerError(error) ? error : new SandboxerError("internal", "The connection to the process was closed."),
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
      this.#tell(end);
      if (this.#options.calls.isPutDown) throw this.#putDown();
      if (failures > 1 || end === "lost") await pause(this.#delayMs(failures), this.#end.signal);
      await this.#locate(lastSeenMs);
      await this.#room();
    }
  }

  /** Each socket brings a window of output; a slow reader whose connections break often must not accumulate them. */
  async #room(): Promise<void> {
    while (this.#queue.bytes > MAX_QUEUED_BYTES && !this.over.aborted) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve;
        this.over.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  /** One socket, from its opening to its end. */
  async #connect(): Promise<SocketEnd> {
    const { calls, token, processId } = this.#options;
    const seen: { end: SocketEnd; error?: SandboxerError } = { end: "lost" };
    const socket = new AttachSocket(
      { calls, token, processId, offset: this.#queue.received },
      {
        output: (frame) => {
          this.#watch?.heard();
          if (!this.#queue.push(frame)) return;
          this.#progressed = true;
          this.#wake();
        },
        event: (event) => {
          this.#watch?.heard();
          if (event.event === "error") seen.error = errorOfFields(event);
          else seen.end = this.#event(event, socket) ?? seen.end;
        },
      },
    );
    this.#socket = socket;
    const watch = new SilenceWatch(this.#options, this.#queue, socket);
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
        this.#attached = true;
        this.#tell("attached");
        this.#queue.begin(event.offset);
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
        // A slow reader of a detached process missed output; what is still buffered is fetched.
        if (event.offset > (this.#queue.received ?? 0)) {
          if (this.#progressed) return "moving";
          this.#queue.miss(event.offset);
        }
        this.#end.abort();
        this.#exit = {
          exitCode: event.exit_code,
          signal: event.signal,
          timedOut: event.timed_out,
          hint: event.hint ?? null,
        };
        this.stdin.fail(new SandboxerError("wrong_state", "The process has ended."));
        this.#wake();
        return "exit";
    }
  }

  #acknowledge(bytes: number): void {
    this.#queue.acknowledge(bytes, (offset) => this.#socket?.send({ action: "ack", offset }) === true);
  }

  /**
   * Finds out over HTTP where the process is, which resumes the sandbox if necessary, and throws if it is not
   * available.
   */
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

  /** Each change once. Errors of the listener are ignored. */
  #tell(state: ConnectionState): void {
    const { onConnection } = this.#options;
    if (onConnection === undefined || this.#told === state) return;
    this.#told = state;
    queueMicrotask(() => onConnection(state));
  }

  #delayMs(failures: number): number {
    return this.#options.calls.transport.backoff.delayMs(failures);
  }

  #putDown(): SandboxerError {
    return new SandboxerError("wrong_state", "The sandbox was paused while you followed one of its processes.", {
      hint: "Resume the sandbox and attach to the process again with the offset in the details.",
      details: { state: "stored", process_id: this.#options.processId, offset: this.offset },
    });
  }
}
