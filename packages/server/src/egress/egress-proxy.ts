import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SandboxConnection } from "../backends/backend.ts";
import type { Egress } from "./egress.ts";
import { withoutPort } from "./greeting.ts";
import { RefusedError, UnreachableError, type Target } from "./outside.ts";
import { SandboxStream } from "./sandbox-stream.ts";

const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_TIMEOUT_MS = 30_000;
/** Headers that concern one hop. */
const HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
]);

/**
 * The HTTP proxy of one sandbox: CONNECT for any protocol, and whole URLs for plain HTTP. It applies the policy to the
 * name that the program asks for, to the address behind it, and to the name in the TLS or HTTP greeting.
 */
export class EgressProxy {
  readonly #egress: Egress;
  readonly #headTimeoutMs: number;
  readonly #server: Server;
  readonly #waits = new Map<Duplex, NodeJS.Timeout>();

  constructor(egress: Egress, headTimeoutMs = HEAD_TIMEOUT_MS) {
    this.#egress = egress;
    this.#headTimeoutMs = headTimeoutMs;
    this.#server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, noDelay: false });
    this.#server.on("request", (request, response) => void this.#forward(request, response));
    this.#server.on("connect", (request, stream, head) => void this.#tunnel(request, stream, head));
    this.#server.on("clientError", (_error, stream) => answer(stream, 400, "Not an HTTP request"));
  }

  /** Serves a program inside that has connected. */
  accept(connection: SandboxConnection): void {
    const stream = new SandboxStream(connection);
    stream.once("close", () => this.#headCame(stream));
    if (!this.#egress.admit(stream, () => stream)) return;
    this.#awaitHead(stream);
    this.#server.emit("connection", stream);
  }

  /** A connection without a request ends after a while. Node's own limit needs a listening server. */
  #awaitHead(stream: Duplex): void {
    const timer = setTimeout(() => stream.destroy(), this.#headTimeoutMs);
    timer.unref();
    this.#waits.set(stream, timer);
  }

  #headCame(stream: Duplex): void {
    clearTimeout(this.#waits.get(stream));
    this.#waits.delete(stream);
  }

  async #tunnel(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    this.#headCame(stream);
    const target = authority(request.url ?? "");
    if (target === undefined) return answer(stream, 400, "CONNECT needs HOST:PORT");
    const dialed = await this.#egress.dial(target, stream).catch((error: unknown) => refuse(stream, error));
    if (dialed === undefined) return;
    stream.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (head.length > 0) stream.unshift(head);
    await this.#egress.relay(stream, dialed, target.port);
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const stream = request.socket as Duplex;
    this.#headCame(stream);
    response.once("finish", () => stream.destroyed || this.#awaitHead(stream));
    const url = URL.parse(request.url ?? "");
    if (url?.protocol !== "http:" || url.host === "") {
      response.writeHead(400, { "content-type": "text/plain", connection: "close" });
      response.end("This is the network proxy of a sandbox. It takes CONNECT, and requests with an http:// URL.\n");
      return;
    }
    const target = { host: url.hostname, port: url.port === "" ? 80 : Number(url.port) };
    try {
      const dialed = await this.#egress.dial(target, response);
      const forget = this.#egress.note(dialed, target.port, () => stream.destroy());
      dialed.socket.once("close", forget);
      // The URL decides, and a Host that says otherwise is not passed on.
      const headers = { ...withoutHops(request.headersDistinct), host: url.host, connection: "close" };
      const outgoing = httpRequest({
        method: request.method ?? "GET",
        path: url.pathname + url.search,
        headers,
        setHost: false,
        createConnection: () => dialed.socket,
      });
      const incoming = new Promise<IncomingMessage>((resolve, reject) => {
        outgoing.once("response", resolve);
        outgoing.once("error", reject);
      });
      response.once("close", () => dialed.socket.destroy());
      pipeline(request, outgoing).catch(() => {});
      const answered = await incoming;
      response.writeHead(answered.statusCode ?? 502, answered.statusMessage, withoutHops(answered.headersDistinct));
      await pipeline(answered, response);
    } catch (error) {
      if (response.headersSent) return void stream.destroy();
      const [status, text] = statusOf(error);
      response.writeHead(status, text, { "content-type": "text/plain", connection: "close" });
      response.end(`sandboxer: ${text}\n`);
    }
  }
}

function authority(text: string): Target | undefined {
  const port = Number(/:([0-9]{1,5})$/.exec(text)?.[1]);
  const host = withoutPort(text);
  return Number.isInteger(port) && port > 0 && port < 65_536 && host !== "" ? { host, port } : undefined;
}

function withoutHops(headers: NodeJS.Dict<string[]>): Record<string, string[]> {
  const named = (headers["connection"] ?? []).flatMap((value) => value.toLowerCase().split(/\s*,\s*/));
  const drop = new Set([...HOP, ...named]);
  const kept = Object.entries(headers).filter(([name]) => !drop.has(name));
  return Object.fromEntries(kept.map(([name, values]) => [name, values ?? []]));
}

function statusOf(error: unknown): readonly [number, string] {
  if (error instanceof RefusedError) return [403, `Blocked by the network policy (${error.rule})`];
  const reason = error instanceof UnreachableError ? error.message : "the connection failed";
  return [502, reason.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 300)];
}

function refuse(stream: Duplex, error: unknown): undefined {
  answer(stream, ...statusOf(error));
}

function answer(stream: Duplex, status: number, text: string): void {
  if (stream.destroyed) return;
  const body = `sandboxer: ${text}\n`;
  const head = `HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n`;
  stream.end(head + body);
  // Unread data of the program would make the kernel drop the answer.
  stream.resume();
  stream.once("end", () => stream.destroy());
  setTimeout(() => stream.destroy(), LINGER_MS).unref();
}

const LINGER_MS = 5_000;
