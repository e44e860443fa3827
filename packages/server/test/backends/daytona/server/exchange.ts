import type { IncomingMessage, ServerResponse } from "node:http";

/** One request as the test server saw it; tests look at these. */
export interface SeenRequest {
  readonly host: "api" | "toolbox";
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export interface Answer {
  readonly status: number;
  readonly json?: unknown;
  readonly bytes?: AsyncIterable<Uint8Array> | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown by a handler: the vendor's error response. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function jsonOf(request: SeenRequest): unknown {
  try {
    return JSON.parse(request.body.toString("utf8"));
  } catch {
    throw new Refusal(400, "invalid request body");
  }
}

export function parameter(request: SeenRequest, name: string): string {
  const value = request.query.get(name);
  if (value === null || value === "") throw new Refusal(400, `${name} is required`);
  return value;
}

export async function readRequest(host: SeenRequest["host"], request: IncomingMessage): Promise<SeenRequest> {
  const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
  const url = new URL(request.url ?? "/", "http://test");
  const { method = "GET", headers } = request;
  return { host, method, path: url.pathname, query: url.searchParams, headers, body: Buffer.concat(chunks) };
}

export async function sendAnswer(response: ServerResponse, answer: Answer): Promise<void> {
  const { status, json, bytes, headers = {} } = answer;
  if (json !== undefined) {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(json));
    return;
  }
  response.writeHead(status, { ...headers });
  for await (const chunk of bytes instanceof Uint8Array ? [bytes] : (bytes ?? [])) response.write(chunk);
  response.end();
}
