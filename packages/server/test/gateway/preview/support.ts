import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type RequestListener,
  type Server,
} from "node:http";
import type { Duplex } from "node:stream";
import { onTestFinished } from "vitest";
import type { CreatedSandboxRecord } from "@sandboxer/protocol";
import { eventually } from "../../../../../test/kit/eventually.ts";
import type { FakeBackend } from "../../../src/backends/fake/index.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";

export const PORT = 8000;
/** A process of the fake sandbox that listens; what it answers is `serveInside`'s. */
const LISTEN = `require("net").createServer((c) => c.pipe(c)).listen(${PORT}, "127.0.0.1", () => console.log("listening"))`;

export interface Inside {
  readonly server: TestServer;
  readonly id: string;
  readonly token: string;
  /** The host of the port's preview. */
  readonly host: string;
}

/** A server, and a sandbox in which a program listens on the port. */
export async function listening(
  program: RequestListener,
  options: TestServerOptions = {},
  body: object = {},
): Promise<Inside & { readonly http: Server }> {
  const server = await startTestServer(options);
  const http = serveInside(server.backend, program);
  return { ...(await sandboxOn(server, body)), http };
}

/** The program that answers on the port in every sandbox of the backend. */
export function serveInside(backend: FakeBackend, program: RequestListener, port = PORT): Server {
  const http = createServer(program);
  backend.services.set(port, (connection: Duplex) => void http.emit("connection", connection));
  onTestFinished(() => http.closeAllConnections());
  return http;
}

export async function sandboxOn(server: TestServer, body: object = {}, key?: string): Promise<Inside> {
  const sandbox = (await call(server, "POST", "/v1/sandboxes", body, key)) as CreatedSandboxRecord;
  const exec = { command: ["node", "-e", LISTEN], detach: true };
  await call(server, "POST", `/v1/sandboxes/${sandbox.id}/exec`, exec, key);
  const { id, token } = sandbox;
  const live = await server.live(id);
  await eventually("it listens", async () => (await live.handle.listeningPorts?.())?.length === 1);
  return { server, id, token, host: `${PORT}-${id}.localhost` };
}

/** A server of any kind. */
type Reachable = Pick<TestServer, "httpUrl">;

interface Addressed {
  readonly server: Reachable;
  readonly host: string;
}

export async function call(
  server: Reachable,
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<unknown> {
  const response = await fetch(server.httpUrl + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface GetOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** A request as a browser or curl sends it: Node's fetch does not allow another Host. */
export async function get({ server, host }: Addressed, options: GetOptions = {}): Promise<Got> {
  const answer = await open({ server, host }, options);
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString() };
}

/** The head of the response; the body follows. */
export async function open(
  { server, host }: Addressed,
  { method = "GET", path = "/", headers = {}, body }: GetOptions = {},
): Promise<IncomingMessage> {
  const { hostname, port } = new URL(server.httpUrl);
  const sent = request({
    hostname,
    port,
    method,
    path,
    headers: { host: `${host}:${port}`, ...headers },
    agent: false,
  });
  onTestFinished(() => void sent.destroy());
  const answered = Promise.withResolvers<IncomingMessage>();
  sent.once("response", answered.resolve).once("error", answered.reject);
  sent.end(body);
  return await answered.promise;
}

/** As a browser opens a page from its address bar. */
export const NAVIGATION = {
  accept: "text/html",
  "sec-fetch-mode": "navigate",
  "sec-fetch-site": "none",
  "sec-fetch-dest": "document",
};
