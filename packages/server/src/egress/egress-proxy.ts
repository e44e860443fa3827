import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { NetworkJudge, type IpAddress, type NetworkPolicy } from "@sandboxer/protocol";
import type { SandboxConnection } from "../backends/backend.ts";
import { MAX_GREETING_BYTES, readGreeting, withoutPort } from "./greeting.ts";
import { hostName, RefusedError, UnreachableError, type Dialed, type Outside, type Target } from "./outside.ts";
import { SandboxStream } from "./sandbox-stream.ts";

/** A connection that was not made, because of a rule. */
export interface Refusal {
  readonly name: string;
  readonly port: number;
  readonly rule: string;
  /** The address that the name stood for; absent: it was not resolved. */
  readonly address?: string | undefined;
}

export interface EgressOptions {
  readonly outside: Outside;
  readonly policy: NetworkPolicy;
  readonly onRefused: (refusal: Refusal) => void;
  /** Absent: 30 seconds. */
  readonly headTimeoutMs?: number;
}

export interface EgressFigures {
  readonly openConnections: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

interface Open {
  readonly to: { readonly name: string; readonly port: number; readonly address: IpAddress };
  readonly end: () => void;
}

const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_TIMEOUT_MS = 30_000;
const MAX_OPEN = 192;
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
  readonly #options: EgressOptions;
  readonly #server: Server;
  readonly #streams = new Set<SandboxStream>();
  readonly #open = new Set<Open>();
  readonly #waits = new Map<Duplex, NodeJS.Timeout>();
  readonly #ending = new AbortController();
  #judge: NetworkJudge;
  #sentBytes = 0;
  #receivedBytes = 0;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.#judge = new NetworkJudge(options.policy);
    this.#server = createServer({ maxHeaderSize: MAX_HEAD_BYTES, noDelay: false });
    this.#server.on("request", (request, response) => void this.#forward(request, response));
    this.#server.on("connect", (request, stream, head) => void this.#tunnel(request, stream, head));
    this.#server.on("clientError", (_error, stream) => answer(stream, 400, "Not an HTTP request"));
  }

  get figures(): EgressFigures {
    let [sentBytes, receivedBytes] = [this.#sentBytes, this.#receivedBytes];
    for (const { sent, received } of this.#streams) {
      sentBytes += sent;
      receivedBytes += received;
    }
    return { openConnections: this.#streams.size, sentBytes, receivedBytes };
  }

  /** Applies to open connections too: those that it forbids are ended. */
  setPolicy(policy: NetworkPolicy): void {
    this.#judge = new NetworkJudge(policy);
    for (const { to, end } of this.#open) if (!this.#judge.judge(to).allowed) end();
  }

  /** Serves a program inside that has connected. */
  accept(connection: SandboxConnection): void {
    const stream = new SandboxStream(connection);
    stream.on("error", () => {});
    this.#streams.add(stream);
    stream.once("close", () => {
      this.#headCame(stream);
      this.#streams.delete(stream);
      this.#sentBytes += stream.sent;
      this.#receivedBytes += stream.received;
    });
    if (this.#ending.signal.aborted) return void stream.destroy();
    this.#awaitHead(stream);
    this.#server.emit("connection", stream);
  }

  close(): void {
    this.#ending.abort();
    for (const stream of this.#streams) stream.destroy();
  }

  /** A connection without a request ends after a while. Node's own limit needs a listening server. */
  #awaitHead(stream: Duplex): void {
    const timer = setTimeout(() => stream.destroy(), this.#options.headTimeoutMs ?? HEAD_TIMEOUT_MS);
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
    const dialed = await this.#dial(target, stream).catch((error: unknown) => refuse(stream, error));
    if (dialed === undefined) return;
    const { socket } = dialed;
    const forget = this.#note(dialed, target.port, () => {
      stream.destroy();
      socket.destroy();
    });
    socket.on("error", () => {});
    stream.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (head.length > 0) stream.unshift(head);
    const inward = pipeline(socket, stream);
    const outward = (async () => {
      const first = await this.#greeting(stream, dialed, target.port);
      if (first.length > 0) socket.write(first);
      await pipeline(stream, socket);
    })();
    await Promise.all([inward, outward]).catch(() => {});
    forget();
    socket.destroy();
    stream.destroy();
  }

  /** The first bytes of a connection whose greeting names no forbidden host; none if the policy has no names. */
  async #greeting(stream: Duplex, { name, address }: Dialed, port: number): Promise<Buffer> {
    let bytes: Buffer = Buffer.alloc(0);
    while (this.#judge.looksAtNames) {
      const greeting = readGreeting(bytes);
      if (greeting.kind === "nameless") return bytes;
      if (greeting.kind === "unreadable") throw this.#refused({ name, port, rule: "unreadable greeting" });
      if (greeting.kind === "named") {
        const greeted = hostName(greeting.name);
        if (greeted === name) return bytes;
        const verdict = this.#judge.judge({ name: greeted ?? "", port, address });
        if (verdict.allowed) return bytes;
        throw this.#refused({
          name: greeted ?? name,
          port,
          rule: `${greeting.by} differs from ${name}: ${verdict.rule}`,
        });
      }
      const more = await nextChunk(stream);
      if (more === undefined) return bytes;
      bytes = Buffer.concat([bytes, more]);
      if (bytes.length > 2 * MAX_GREETING_BYTES) throw this.#refused({ name, port, rule: "unreadable greeting" });
    }
    return bytes;
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
      const dialed = await this.#dial(target, response);
      const forget = this.#note(dialed, target.port, () => stream.destroy());
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

  /** Connects, unless the sandbox has too many connections; gives up when `until` closes. */
  async #dial(target: Target, until: NodeJS.EventEmitter): Promise<Dialed> {
    if (this.#open.size >= MAX_OPEN) throw new UnreachableError(`the sandbox has ${MAX_OPEN} connections already`);
    const gone = new AbortController();
    const onClose = (): void => gone.abort();
    until.once("close", onClose);
    try {
      return await this.#options.outside.dial(target, this.#judge, AbortSignal.any([gone.signal, this.#ending.signal]));
    } catch (error) {
      if (error instanceof RefusedError) {
        const name = hostName(target.host) ?? target.host;
        this.#options.onRefused({ name, port: target.port, rule: error.rule, address: error.address });
      }
      throw error;
    } finally {
      until.off("close", onClose);
    }
  }

  #refused(refusal: Refusal): RefusedError {
    this.#options.onRefused(refusal);
    return new RefusedError(refusal.rule);
  }

  /** Policies that change apply to it from now on. */
  #note({ name, address }: Dialed, port: number, end: () => void): () => void {
    const open = { to: { name, port, address }, end };
    this.#open.add(open);
    // The policy may have changed while it was connecting.
    if (!this.#judge.judge(open.to).allowed) end();
    return () => this.#open.delete(open);
  }
}

function authority(text: string): Target | undefined {
  const port = Number(/:([0-9]{1,5})$/.exec(text)?.[1]);
  const host = withoutPort(text);
  return Number.isInteger(port) && port > 0 && port < 65_536 && host !== "" ? { host, port } : undefined;
}

/** The next bytes; undefined: there are none. */
function nextChunk(stream: Duplex): Promise<Buffer | undefined> {
  const chunk = stream.read() as Buffer | null;
  if (chunk !== null) return Promise.resolve(chunk);
  if (stream.readableEnded || stream.destroyed) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const onEvent = (): void => {
      for (const event of EVENTS) stream.off(event, onEvent);
      resolve(nextChunk(stream));
    };
    for (const event of EVENTS) stream.once(event, onEvent);
  });
}

const EVENTS = ["readable", "end", "close"] as const;

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
  // What the program still sends must not make the kernel drop the answer.
  stream.resume();
  stream.once("end", () => stream.destroy());
  setTimeout(() => stream.destroy(), LINGER_MS).unref();
}

const LINGER_MS = 5_000;
