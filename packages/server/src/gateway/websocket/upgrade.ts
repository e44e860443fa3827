import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { CloseCode } from "@sandboxer/protocol";
import type { Logger } from "pino";
import { WebSocketServer, type WebSocket } from "ws";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import { browserRefusal, isTrusted, type AccessRules } from "../access.ts";
import { serveAttach, type AttachParameters } from "./attach-endpoint.ts";
import { Connection } from "./connection.ts";
import { serveCreate } from "./create-endpoint.ts";

export interface UpgradeOptions extends AccessRules {
  /** Undefined until the server is ready. */
  readonly manager: () => SandboxManager | undefined;
  readonly maxClients: number;
  readonly maxMessageBytes: number;
  /** How long a client of `/create` may wait with its configuration. */
  readonly firstMessageMs?: number;
  readonly log: Logger;
}

const FIRST_MESSAGE_MS = 10_000;

type Endpoint = (connection: Connection) => Promise<void>;

/** Turns requests for `/create` and `/attach/{id}` into WebSockets, after everything that can be refused was looked at. */
export class WebSocketGateway {
  readonly #options: UpgradeOptions;
  readonly #server: WebSocketServer;
  readonly #sessions = new Set<Promise<void>>();

  constructor(http: Server, options: UpgradeOptions) {
    this.#options = options;
    this.#server = new WebSocketServer({ noServer: true, maxPayload: options.maxMessageBytes, clientTracking: true });
    http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  get clients(): number {
    return this.#server.clients.size;
  }

  /** Sends away who is left, waits for the clients to hear what they were told, then ends what remains. */
  async close(graceMs: number): Promise<void> {
    this.#server.clients.forEach((client) => client.close(CloseCode.restarting));
    const timer = setTimeout(() => this.#server.clients.forEach((client) => client.terminate()), graceMs);
    // What a session still waits for may never come.
    await Promise.race([Promise.all(this.#sessions), delay(2 * graceMs, undefined, { ref: false })]);
    clearTimeout(timer);
    this.#server.clients.forEach((client) => client.terminate());
    this.#server.close();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    const manager = this.#options.manager();
    const url = URL.parse(request.url ?? "/", "http://localhost");
    const endpoint = url === null ? undefined : this.#endpoint(request, url);
    if (endpoint === undefined) return refuse(socket, "404 Not Found", "There is no such endpoint.");
    const refusal = browserRefusal(request, this.#options);
    if (refusal !== undefined) return refuse(socket, "403 Forbidden", refusal);
    if (typeof endpoint === "string") return refuse(socket, "401 Unauthorized", endpoint);
    if (manager === undefined || manager.draining)
      return refuse(socket, "503 Service Unavailable", "The server is not ready.");
    if (this.clients >= this.#options.maxClients) {
      return refuse(socket, "503 Service Unavailable", "The server has as many clients as it takes.");
    }
    this.#server.handleUpgrade(request, socket, head, (client) =>
      this.#serve(client, socket as Socket, manager, endpoint),
    );
  }

  #endpoint(request: IncomingMessage, url: URL): Endpoint | string | undefined {
    const trusted = isTrusted(request, this.#options);
    if (url.pathname === "/create") {
      const { firstMessageMs = FIRST_MESSAGE_MS } = this.#options;
      return trusted ? (connection) => serveCreate(connection, firstMessageMs) : "A key of the server is needed.";
    }
    const [, encodedId] = /^\/attach\/([^/]+)$/.exec(url.pathname) ?? [];
    if (encodedId === undefined) return undefined;
    const parameters: AttachParameters = {
      sandboxId: decode(encodedId),
      token: url.searchParams.get("sandbox_token") ?? undefined,
      checkpoint: url.searchParams.get("checkpoint") ?? undefined,
      trusted,
    };
    return (connection) => serveAttach(connection, parameters);
  }

  #serve(client: WebSocket, stream: Socket, manager: SandboxManager, endpoint: Endpoint): void {
    const { log } = this.#options;
    const serving = endpoint(new Connection({ socket: client, stream, manager, log })).catch((error: unknown) => {
      log.error({ err: error }, "a client's session failed");
      client.close(1011);
    });
    const closed = new Promise((resolve) => client.once("close", resolve));
    const over = Promise.all([serving, closed]).then(() => {});
    this.#sessions.add(over);
    void over.finally(() => this.#sessions.delete(over));
  }
}

function refuse(socket: Duplex, status: string, message: string): void {
  const body = JSON.stringify({ error: { message } });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
