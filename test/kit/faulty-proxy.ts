import { once } from "node:events";
import type { Answered, UploadSessions } from "./upload-sessions.ts";
import { createServer, type IncomingMessage, request as forwardRequest, type ServerResponse } from "node:http";

/** The fault of one request on its way. Undefined: none. */
export type Fault =
  /** It never arrives, and the connection breaks. */
  | "request-lost"
  /** It is carried out, and the connection breaks instead of an answer. */
  | "answer-lost"
  /** The connection breaks in the middle of the answer's body. */
  | "answer-cut"
  /** It is not carried out, and answered with this status. */
  | { readonly status: number; readonly body?: string }
  /** It is carried out, and answered with this status all the same. */
  | { readonly statusInstead: number }
  | { readonly delayMs: number };

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

/** Sits between a store and its server, and disturbs the traffic as networks and overloaded servers do. */
export class FaultyProxy {
  readonly endpoint: string;
  readonly seen: SeenRequest[] = [];
  /** If set: answers in place of a server that cannot report the progress of an upload. */
  sessions: UploadSessions | undefined;
  /** Asked for each request. */
  fault: (request: SeenRequest) => Fault | undefined = () => undefined;
  /** The request that the server gets instead. */
  rewrite: (request: SeenRequest) => SeenRequest = (request) => request;
  readonly #close: () => Promise<void>;

  private constructor(endpoint: string, close: () => Promise<void>) {
    this.endpoint = endpoint;
    this.#close = close;
  }

  static async start(target: string): Promise<FaultyProxy> {
    const server = createServer((incoming, outgoing) => {
      outgoing.on("error", () => undefined);
      pass(proxy, target, incoming, outgoing).catch(() => outgoing.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const proxy: FaultyProxy = new FaultyProxy(`http://127.0.0.1:${port}`, async () => {
      server.close();
      server.closeAllConnections();
    });
    return proxy;
  }

  /** Injects the fault into the next matching request only. */
  once(fits: (request: SeenRequest) => boolean, fault: Fault): void {
    let done = false;
    this.fault = (request) => {
      if (done || !fits(request)) return undefined;
      done = true;
      return fault;
    };
  }

  async stop(): Promise<void> {
    await this.#close();
  }
}

async function pass(
  proxy: FaultyProxy,
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const seen = { method: incoming.method ?? "", path: incoming.url ?? "", headers: incoming.headers };
  proxy.seen.push(seen);
  const fault = proxy.fault(seen);
  const body = Buffer.concat(await incoming.toArray());
  if (fault === "request-lost") return void outgoing.destroy();
  if (typeof fault === "object" && "status" in fault)
    return void outgoing.writeHead(fault.status).end(fault.body ?? "");
  if (typeof fault === "object" && "delayMs" in fault) await new Promise((done) => setTimeout(done, fault.delayMs));

  const carryOut = (): Promise<Answered> => forward(target, proxy.rewrite(seen), body);
  const { answer, content } = await (proxy.sessions?.answer(incoming, body.byteLength, carryOut) ?? carryOut());
  if (fault === "answer-lost") return void outgoing.destroy();
  if (typeof fault === "object" && "statusInstead" in fault) return void outgoing.writeHead(fault.statusInstead).end();
  const headers = { ...answer.headers };
  // An upload continues through the proxy too.
  if (headers.location !== undefined) headers.location = headers.location.replace(target, proxy.endpoint);
  outgoing.writeHead(answer.statusCode ?? 502, headers);
  if (fault !== "answer-cut") return void outgoing.end(incoming.method === "HEAD" ? undefined : content);
  outgoing.write(content.subarray(0, content.byteLength / 2), () => setTimeout(() => outgoing.destroy(), 20));
}

async function forward(target: string, request: SeenRequest, body: Buffer): Promise<Answered> {
  const given = { ...request.headers, "content-length": `${body.byteLength}`, "transfer-encoding": undefined };
  const headers = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const forwarded = forwardRequest(new URL(request.path, target), { method: request.method, headers });
  forwarded.end(body);
  const [answer] = (await once(forwarded, "response")) as [IncomingMessage];
  return { answer, content: Buffer.concat(await answer.toArray()) };
}
