import { SandboxProcess } from "./process/process.ts";
import type { WatchOptions } from "./process/process-link.ts";
import { execBody, isInline, type Command, type SpawnOptions, type StartedProcess } from "./process/start.ts";
import type { SandboxCalls } from "./sandbox-calls.ts";
import type { Bytes, CallOptions } from "./wire/call-types.ts";
import { streamOf } from "./wire/request.ts";

export interface PtyOptions extends Omit<SpawnOptions, "pty" | "stdin" | "detach"> {
  /** Default: a shell. */
  readonly command?: Command | undefined;
  /** Default: 24. */
  readonly rows?: number | undefined;
  /** Default: 80. */
  readonly columns?: number | undefined;
}

export interface AttachProcessOptions extends CallOptions, WatchOptions {
  /** How much of its output was received: `offset` of the process, or of a chunk. */
  readonly offset?: number | undefined;
}

export interface ReconnectOptions {
  /** How long to retry a lost connection to a process. Default: 60,000. */
  readonly reconnectMs?: number | undefined;
  /** How long a silent connection to a process is trusted before the server is asked. Default: 30,000. */
  readonly silenceMs?: number | undefined;
}

/** Starts the processes of a sandbox, and finds them again. */
export class Processes {
  readonly #calls: SandboxCalls;
  readonly #token: string | undefined;
  readonly #reconnecting: { readonly reconnectMs: number; readonly silenceMs: number };

  constructor(
    calls: SandboxCalls,
    token: string | undefined,
    { reconnectMs = 60_000, silenceMs = 30_000 }: ReconnectOptions = {},
  ) {
    this.#calls = calls;
    this.#token = token;
    this.#reconnecting = { reconnectMs, silenceMs };
  }

  async start(command: Command, options: SpawnOptions): Promise<SandboxProcess> {
    const { signal, epoch, idempotencyKey, stdin, onConnection } = options;
    const record = await this.#calls.call(
      "exec",
      { params: { id: this.#calls.sandboxId }, body: execBody(command, options) },
      { signal, epoch, idempotencyKey },
    );
    const process = this.#handle(record as StartedProcess, { offset: 0, signal, onConnection });
    if (stdin !== undefined && !isInline(stdin)) feed(process, stdin);
    return process;
  }

  async pty({ command = ["bash"], rows = 24, columns = 80, ...options }: PtyOptions): Promise<SandboxProcess> {
    return this.start(command, { ...options, pty: { rows, columns } });
  }

  async attach(id: string, { offset, onConnection, ...options }: AttachProcessOptions): Promise<SandboxProcess> {
    const params = { id: this.#calls.sandboxId, process_id: id };
    const record = await this.#calls.call("getProcess", { params }, options);
    return this.#handle(record, { offset, onConnection });
  }

  #handle(
    { id, pid, pty, detached }: StartedProcess,
    { offset, signal, onConnection }: WatchOptions & { offset: number | undefined; signal?: AbortSignal | undefined },
  ): SandboxProcess {
    return new SandboxProcess({
      calls: this.#calls,
      token: this.#token,
      ...this.#reconnecting,
      processId: id,
      pid,
      pty,
      detached,
      offset,
      signal,
      onConnection,
    });
  }
}

/** Sends stdin while output is read. A program may end without having read all of it. */
function feed(process: SandboxProcess, stdin: Bytes): void {
  const bytes = isIterable(stdin) ? streamOf(stdin) : new Blob([stdin as string]).stream();
  void bytes.pipeTo(process.stdin as WritableStream<Uint8Array>).catch(() => {});
}

function isIterable(bytes: Bytes): bytes is ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> {
  return bytes instanceof ReadableStream || (typeof bytes === "object" && Symbol.asyncIterator in bytes);
}
