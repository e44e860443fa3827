import type { Buffer } from "node:buffer";
import type { Readable, Writable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { agentError } from "./agent-error.ts";
import { encodeFrame, FrameDecoder, type Frame } from "./frame-decoder.ts";
import { Reply, type RequestType } from "./frame-types.ts";
import { MalformedFrameError, PayloadReader, type PayloadWriter } from "./payload.ts";

export interface AgentEvents {
  output(process: number, stream: number, offset: number, data: Buffer): void;
  exit(process: number, code: number, signal: number, outputEnd: number): void;
  connectionData(connection: number, data: Buffer): void;
  connectionClosed(connection: number, errno: number): void;
  connectionAccepted(connection: number, port: number): void;
  change(watch: number, flags: number, name: string): void;
}

export interface RequestOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Does not count as use of the sandbox. */
  readonly unasked?: boolean;
}

export interface AgentConnectionOptions {
  readonly onFailure: (error: SandboxerError) => void;
  /** The agent has ended; the owner then fails the connection with the reason. */
  readonly onEnd: () => void;
  /** Called right before each frame that is sent. */
  readonly beforeFrame?: (() => void) | undefined;
  /** Whether output chunks stay valid. */
  readonly chunksLast: boolean;
}

/**
 * Parses a reply. It runs before any later frame is processed, so that a reply may change the meaning of later frames;
 * a malformed one ends the connection.
 */
export type ReplyReader<Result> = (reply: PayloadReader) => Result;

const nothing: ReplyReader<void> = () => {};

interface Waiting {
  readonly settle: (reply: PayloadReader) => void;
  readonly reject: (error: Error) => void;
  readonly cleanUp: () => void;
  readonly unasked: boolean;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const REPLACED = "Another server owns the sandbox now.";

/**
 * Requests and events over the agent's two pipes. Every frame is hostile input: the first one that breaks the
 * protocol ends the connection, and the owner ends the sandbox.
 */
export class AgentConnection {
  readonly #input: Writable;
  readonly #output: Readable;
  readonly #events: AgentEvents;
  readonly #waiting = new Map<number, Waiting>();
  #nextRequest = 1;
  #failure: SandboxerError | undefined;
  #usedMs = performance.now();
  readonly #options: AgentConnectionOptions;
  readonly #ready = Promise.withResolvers<void>();

  constructor(input: Writable, output: Readable, events: AgentEvents, options: AgentConnectionOptions) {
    this.#input = input;
    this.#output = output;
    this.#events = events;
    this.#options = options;
    this.#ready.promise.catch(() => {});
    const decoder = new FrameDecoder(options);
    output.on("data", (chunk: Buffer) => {
      if (this.#failure !== undefined) return;
      try {
        for (const frame of decoder.push(chunk)) {
          this.#dispatch(frame);
          if (this.#failure !== undefined) return;
        }
      } catch (error) {
        const reason = error instanceof MalformedFrameError ? error.message : String(error);
        this.fail(new SandboxerError("sandbox_failed", `The sandbox's agent broke its protocol: ${reason}.`));
      }
    });
    output.on("end", () => options.onEnd());
    output.on("error", () => options.onEnd());
    // A write to an agent that has ended; its end shows on the other pipe.
    input.on("error", () => {});
  }

  /** Settles when a fresh agent has announced itself. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get failure(): SandboxerError | undefined {
    return this.#failure;
  }

  /** When the last frame came or went, except for background ones; monotonic. */
  get usedMs(): number {
    return this.#usedMs;
  }

  /** Whether a reply is awaited, or data is still being sent to the agent. */
  get busy(): boolean {
    return this.#waiting.size > 0 || this.#input.writableLength > 0;
  }

  request(type: RequestType, payload: PayloadWriter, options?: RequestOptions): Promise<void> {
    return this.ask(type, payload, nothing, options);
  }

  /** A request whose reply has content. */
  ask<Result>(
    type: RequestType,
    payload: PayloadWriter,
    read: ReplyReader<Result>,
    options: RequestOptions = {},
  ): Promise<Result> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (options.signal?.aborted) return Promise.reject(options.signal.reason as Error);
    const request = this.#nextRequest;
    this.#nextRequest = request === 0xffff_ffff ? 1 : request + 1;
    return new Promise((resolve, reject) => {
      const frame = encodeFrame(type, request, ...payload.parts);
      const giveUp = (error: Error): void => {
        this.#waiting.get(request)?.cleanUp();
        this.#waiting.delete(request);
        reject(error);
      };
      const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
      const timer = setTimeout(
        () => giveUp(new SandboxerError("timeout", `The sandbox did not answer within ${timeoutMs} ms.`)),
        timeoutMs,
      );
      const onAbort = (): void => giveUp(options.signal?.reason as Error);
      options.signal?.addEventListener("abort", onAbort, { once: true });
      const cleanUp = (): void => {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", onAbort);
      };
      const settle = (reply: PayloadReader): void => {
        const result = read(reply);
        reply.end();
        resolve(result);
      };
      const unasked = options.unasked === true;
      this.#waiting.set(request, { settle, reject, cleanUp, unasked });
      this.#write(frame, unasked);
    });
  }

  /** A request that wants no reply. */
  send(type: RequestType, payload: PayloadWriter, { unasked = false }: { readonly unasked?: boolean } = {}): void {
    if (this.#failure === undefined) this.#write(encodeFrame(type, 0, ...payload.parts), unasked);
  }

  #write(frame: Buffer, unasked: boolean): void {
    if (!unasked) this.#usedMs = performance.now();
    this.#options.beforeFrame?.();
    this.#input.write(frame);
  }

  /** Ends the connection and closes its pipes: pending requests fail with this error. The first failure wins. */
  fail(error: SandboxerError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#ready.reject(error);
    for (const waiting of this.#waiting.values()) {
      waiting.cleanUp();
      waiting.reject(error);
    }
    this.#waiting.clear();
    this.#input.destroy();
    this.#output.destroy();
    this.#options.onFailure(error);
  }

  #dispatch(frame: Frame): void {
    const payload = new PayloadReader(frame.payload, frame.lasts);
    if (this.#waiting.get(frame.request)?.unasked !== true) this.#usedMs = performance.now();
    switch (frame.type) {
      case Reply.ok:
      case Reply.error:
        return this.#settle(frame, payload);
      case Reply.output:
        return this.#events.output(payload.u32(), payload.u8(), payload.u64(), payload.rest());
      case Reply.exit:
        return this.#events.exit(payload.u32(), payload.i32(), payload.i32(), lastField(payload, payload.u64()));
      case Reply.connectionData:
        return this.#events.connectionData(payload.u32(), payload.rest());
      case Reply.connectionClosed:
        return this.#events.connectionClosed(payload.u32(), lastField(payload, payload.u32()));
      case Reply.connectionAccepted:
        return this.#events.connectionAccepted(payload.u32(), lastField(payload, payload.u16()));
      case Reply.change:
        return this.#events.change(payload.u32(), payload.u8(), lastField(payload, payload.string()));
      case Reply.ready:
        return this.#ready.resolve();
      case Reply.resynced:
        // Later frames are for a host that does not know this one's requests.
        return this.fail(new SandboxerError("sandbox_failed", REPLACED, { details: { replaced: true } }));
      default:
        throw new MalformedFrameError(`unknown frame type ${frame.type}`);
    }
  }

  #settle(frame: Frame, payload: PayloadReader): void {
    const waiting = this.#waiting.get(frame.request);
    // A reply whose caller gave up.
    if (waiting === undefined) return;
    // It stays pending until its reply was parsed: a malformed one fails it with the connection.
    if (frame.type === Reply.error) waiting.reject(readError(payload));
    else waiting.settle(payload);
    this.#waiting.delete(frame.request);
    waiting.cleanUp();
  }
}

function readError(payload: PayloadReader): SandboxerError {
  return agentError(payload.u32(), lastField(payload, payload.string()));
}

function lastField<Value>(payload: PayloadReader, value: Value): Value {
  payload.end();
  return value;
}
