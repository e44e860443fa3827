import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { SandboxBackend } from "../../../../src/backends/backend.ts";
import { ControlPlane, ORGANIZATION } from "./control-plane.ts";
import { type Answer, readRequest, Refusal, type SeenRequest, sendAnswer } from "./exchange.ts";
import { handleToolbox } from "./toolbox-routes.ts";

/** Replaces the server's own answer. Undefined: the server answers as usual. */
export type Interference = (request: SeenRequest) => Answer | undefined;

/**
 * Daytona as its published clients know it: the control plane and the toolbox on two ports, with real sandboxes of
 * another backend behind them. `vendor-clients.test.ts` runs the vendor's own clients against it.
 */
export class DaytonaServer {
  readonly apiKey = `dtn_${randomUUID().replaceAll("-", "")}`;
  readonly organizationId = ORGANIZATION;
  readonly plane: ControlPlane;
  readonly requests: SeenRequest[] = [];
  interfere: Interference = () => undefined;
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  readonly #api: Server;
  readonly #toolbox: Server;
  readonly #backend: SandboxBackend;

  private constructor(backend: SandboxBackend) {
    this.#backend = backend;
    this.plane = new ControlPlane(backend);
    this.#api = createServer((request, response) => void this.#serve("api", request, response));
    this.#toolbox = createServer((request, response) => void this.#serve("toolbox", request, response));
    this.#toolbox.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async open(backend: SandboxBackend): Promise<DaytonaServer> {
    const server = new DaytonaServer(backend);
    for (const part of [server.#api, server.#toolbox]) await once(part.listen(0, "127.0.0.1"), "listening");
    server.plane.toolboxUrl = server.toolboxUrl;
    return server;
  }

  get apiUrl(): string {
    return `http://127.0.0.1:${(this.#api.address() as AddressInfo).port}/api`;
  }

  get toolboxUrl(): string {
    return `http://127.0.0.1:${(this.#toolbox.address() as AddressInfo).port}/toolbox`;
  }

  /** `POST /sandbox` of the control plane, without its base path. */
  seen(method: string, path: RegExp, host: SeenRequest["host"] = "api"): SeenRequest[] {
    return this.requests.filter(
      (request) => request.host === host && request.method === method && path.test(request.path.replace(/^\/api/, "")),
    );
  }

  /** As a restarted proxy does. */
  cutStreams(): number {
    const clients = [...this.#sockets.clients];
    for (const socket of clients) socket.terminate();
    return clients.length;
  }

  async close(): Promise<void> {
    this.cutStreams();
    for (const part of [this.#api, this.#toolbox]) {
      part.closeAllConnections();
      part.close();
    }
    await this.plane.close();
    await this.#backend.close();
  }

  async #serve(host: SeenRequest["host"], incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(host, incoming);
    this.requests.push(request);
    try {
      const answer = this.interfere(request) ?? (await this.#answer(request));
      await sendAnswer(response, answer);
    } catch (thrown) {
      const { status, message, code } = thrown instanceof Refusal ? thrown : new Refusal(500, String(thrown));
      const { method, path } = request;
      const body = { statusCode: status, message, method, path, timestamp: new Date().toISOString() };
      if (response.headersSent) return void response.destroy();
      await sendAnswer(response, { status, json: code === undefined ? body : { ...body, code } });
    }
  }

  #answer(request: SeenRequest): Promise<Answer> | Answer {
    this.#authorize(request.headers);
    if (request.host === "api") return this.plane.handle(request);
    const { id, path } = toolboxPath(request.path);
    return handleToolbox(this.plane.find(id), request, path);
  }

  #authorize(headers: IncomingMessage["headers"]): void {
    if (headers.authorization !== `Bearer ${this.apiKey}`) throw new Refusal(401, "Unauthorized");
    const organization = headers["x-daytona-organization-id"];
    if (organization !== undefined && organization !== this.organizationId)
      throw new Refusal(403, "Forbidden resource");
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    try {
      this.#authorize(request.headers);
      const url = new URL(request.url ?? "", "http://test");
      const { id, path } = toolboxPath(url.pathname);
      const { sessions, terminals } = this.plane.find(id);
      const logs = /^\/process\/session\/([^/]+)\/command\/([^/]+)\/logs$/.exec(path);
      const terminal = /^\/process\/pty\/([^/]+)\/connect$/.exec(path);
      const log = logs === null ? undefined : sessions?.log(...([logs[1], logs[2]].map(decoded) as [string, string]));
      const id2 = terminal === null ? undefined : decoded(terminal[1]);
      if (id2 !== undefined) terminals?.describe(id2);
      this.#sockets.handleUpgrade(request, socket, head, (opened) => {
        if (log !== undefined) void stream(log.follow(), opened);
        else if (id2 !== undefined) void terminals?.connect(id2, opened);
      });
    } catch (thrown) {
      const status = thrown instanceof Refusal ? thrown.status : 500;
      socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    }
  }
}

async function stream(chunks: AsyncIterable<Buffer>, socket: WebSocket): Promise<void> {
  for await (const chunk of chunks) {
    if (socket.readyState !== socket.OPEN) return;
    await new Promise((resolve) => socket.send(chunk, resolve));
  }
  socket.close(1000);
}

function toolboxPath(path: string): { readonly id: string; readonly path: string } {
  const match = /^\/toolbox\/([^/]+)(\/.*)$/.exec(path);
  if (match === null) throw new Refusal(404, "path must be of format /toolbox/<sandboxId>/<path>");
  return { id: decoded(match[1]), path: match[2] ?? "" };
}

function decoded(part: string | undefined): string {
  return decodeURIComponent(part ?? "");
}
