import type { ProcessAction, ProcessEvent } from "@sandboxer/protocol";
import type { SandboxCalls } from "../sandbox-calls.ts";
import { addressOf } from "../wire/request.ts";
import { openWebSocket } from "../wire/websocket.ts";
import { decodeEvent, decodeFrame } from "./frames.ts";

const ATTACH_PATH = "/v1/sandboxes/{id}/processes/{process_id}/attach";

export interface AttachTarget {
  readonly calls: SandboxCalls;
  readonly token: string | undefined;
  readonly processId: string;
  readonly offset: number | undefined;
}

export interface AttachListener {
  output(frame: ReturnType<typeof decodeFrame>): void;
  event(event: ProcessEvent): void;
}

/** One WebSocket to one process, until it closes. */
export class AttachSocket {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #over: () => void;

  constructor({ calls, token, processId, offset }: AttachTarget, listener: AttachListener) {
    const { apiKey, relay } = calls.transport;
    const address = addressOf(calls.url, ATTACH_PATH, {
      params: { id: calls.sandboxId, process_id: processId },
      query: {
        offset,
        ...(apiKey === undefined ? { sandbox_token: token } : {}),
        ...(relay ? { relay: "allow" } : {}),
      },
    });
    this.#socket = openWebSocket(address, apiKey);
    const closed = Promise.withResolvers<void>();
    this.closed = closed.promise;
    this.#over = () => closed.resolve();
    this.#socket.onmessage = ({ data }) => {
      try {
        if (typeof data === "string") listener.event(decodeEvent(data));
        else listener.output(decodeFrame(data as ArrayBuffer));
      } catch (error) {
        closed.reject(error);
        this.close();
      }
    };
    // Scripts cannot see the cause of a socket error; only that it closed.
    this.#socket.onerror = () => {};
    this.#socket.onclose = () => closed.resolve();
  }

  /** False if the socket is not open. */
  send(frame: Uint8Array | ProcessAction): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(frame instanceof Uint8Array ? frame.slice() : JSON.stringify(frame));
    return true;
  }

  /** Ends at once: a close handshake would wait for a dead server. */
  close(): void {
    this.#socket.onmessage = null;
    this.#socket.close(1000);
    this.#over();
  }
}
