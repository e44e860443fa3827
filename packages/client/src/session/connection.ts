import type { ServerEvent, Status } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { openWebSocket } from "../wire/websocket.ts";

/** An event as received; an error comes with the status that it explains. */
export interface Received {
  readonly event: ServerEvent;
  readonly failed?: { readonly status: Status | undefined; readonly error: SandboxerError };
}

/** Inspects each event: a value ends the wait, a throw fails it. */
export type Step<Result> = (received: Received) => Result | undefined;

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

export interface ConnectionKeys {
  /** A key of the server. */
  readonly apiKey?: string;
  /** Your own encryption key for the sandbox's saved data: 32 bytes in base64 or hex. */
  readonly encryptionKey?: string;
}

/** One WebSocket to the server: events in order, to all listeners. */
export class Connection {
  readonly closed: Promise<Closed>;
  readonly #socket: WebSocket;
  readonly #listeners = new Set<(received: Received) => void>();
  readonly #opened: Promise<void>;
  #errorStatus: Status | undefined;
  #lastError: SandboxerError | undefined;

  constructor(url: URL, { apiKey, encryptionKey }: ConnectionKeys) {
    this.#socket = openWebSocket(url, apiKey, encryptionKey);
    const opened = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<Closed>();
    this.#opened = opened.promise;
    this.closed = closed.promise;
    this.#socket.onopen = () => opened.resolve();
    // Scripts cannot see the cause of a socket error; only that it closed.
    this.#socket.onerror = () => {};
    this.#socket.onmessage = ({ data }) => this.#receive(String(data));
    this.#socket.onclose = ({ code, reason }) => {
      opened.resolve();
      closed.resolve({ code, reason });
    };
  }

  /** Sends a message, as soon as the socket is open; in the order of the calls. Lost if the socket has closed. */
  send(message: object): void {
    void this.#opened.then(() => {
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
    });
  }

  listen(listener: (received: Received) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Waits for the result of a step. With `onError` "close", any error event fails the wait; with "own", only the step's
   * own throw does. The end of the connection fails it in any case.
   */
  async until<Result>(step: Step<Result>, onError: "close" | "own" = "own"): Promise<Result> {
    const found = Promise.withResolvers<Result>();
    const stop = this.listen((received) => {
      try {
        const result = step(received);
        if (result !== undefined) found.resolve(result);
        else if (onError === "close" && received.failed !== undefined) throw received.failed.error;
      } catch (error) {
        found.reject(error);
      }
    });
    void this.closed.then((closed) => found.reject(this.#lastError ?? lost(closed)));
    return found.promise.finally(stop);
  }

  close(): void {
    this.#socket.close(1000);
  }

  #receive(text: string): void {
    const event = JSON.parse(text) as ServerEvent;
    if (event.event === "status_update") this.#errorStatus = event.message === undefined ? undefined : event.status;
    const received: Received =
      event.event === "error"
        ? { event, failed: { status: this.#errorStatus, error: errorOf(event, this.#errorStatus) } }
        : { event };
    this.#lastError = received.failed?.error;
    for (const listener of this.#listeners) listener(received);
  }
}

function errorOf(event: Extract<ServerEvent, { event: "error" }>, status: Status | undefined): SandboxerError {
  return new SandboxerError(event.code ?? "internal", event.message, {
    ...(event.hint === undefined ? {} : { hint: event.hint }),
    details: status === undefined ? {} : { status },
  });
}

function lost({ code, reason }: Closed): SandboxerError {
  const details = { closeCode: code };
  if (code === 1012) return new SandboxerError("draining", "The server is shutting down.", { details });
  if (code === 1009)
    return new SandboxerError("too_large", "The message is larger than the server allows.", { details });
  const what =
    reason === "" ? `The connection was closed with ${code}.` : `The connection was closed with ${code}: ${reason}`;
  return new SandboxerError("backend_unavailable", what, {
    details,
    hint: "Check that the server can be reached, then attach again. Executions keep running.",
  });
}
