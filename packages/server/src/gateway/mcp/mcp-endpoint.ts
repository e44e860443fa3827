import type { IncomingHttpHeaders } from "node:http";
import { ENCRYPTION_KEY_HEADER, SandboxerError } from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AccessGate } from "../access/access-gate.ts";
import { requestKeysOf } from "../access/encryption-key.ts";
import { requireScope } from "../access/principal.ts";
import { createServer } from "../../support/node-http.ts";
import { ownFetch } from "./own-connection.ts";

/** A request of the Model Context Protocol, and how its tools call this server. */
export interface McpCall {
  readonly request: Request;
  readonly tools: "core" | "all";
  readonly connection: {
    readonly url: string;
    readonly fetch: typeof globalThis.fetch;
    readonly apiKey?: string;
    readonly encryptionKey?: string;
  };
}

export interface McpEndpointOptions {
  readonly gate: AccessGate;
  /** Speaks the protocol. Its tools call the HTTP API with the caller's own key, so it needs no rights of its own. */
  readonly answerMcp: (call: McpCall) => Promise<Response>;
}

/** The authority of calls of the server to itself: a loopback name, and never the host of a preview. */
const OWN_URL = "http://localhost";

/** Registers `/mcp`, the endpoint of streamable HTTP. */
export async function registerMcp(app: FastifyInstance, { gate, answerMcp }: McpEndpointOptions): Promise<void> {
  // Takes the calls of the server to itself, which have no TLS.
  const own = createServer((request, response) => app.routing(request, response));
  app.removeAllContentTypeParsers();
  // The implementation of the protocol checks the body, and answers in its form.
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.route<{ Body: Buffer | undefined; Querystring: Readonly<Record<string, unknown>> }>({
    method: ["GET", "POST", "DELETE"],
    url: "/mcp",
    // Before the body is read. A malformed encryption key is refused here, as everywhere.
    onRequest: async ({ raw }) => {
      const principal = gate.admit(gate.requestOf(raw));
      requireScope(principal, "read");
      requestKeysOf(raw, principal);
    },
    handler: async (request, reply) => {
      const access = gate.requestOf(request.raw);
      const apiKey = gate.authenticator.keyOf(access);
      const encryptionKey = request.headers[ENCRYPTION_KEY_HEADER];
      const response = await answerMcp({
        request: webRequest(request, reply),
        tools: toolsOf(request.query["tools"]),
        connection: {
          url: OWN_URL,
          fetch: ownFetch(own, access.remoteAddress),
          ...(apiKey === undefined ? {} : { apiKey }),
          ...(typeof encryptionKey === "string" ? { encryptionKey } : {}),
        },
      });
      // It is about one connection, and not allowed over HTTP/2.
      response.headers.delete("connection");
      return reply.send(response);
    },
  });
}

function webRequest({ method, headers, body, url }: FastifyRequest<{ Body: Buffer | undefined }>, reply: FastifyReply) {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return new Request(new URL(url, OWN_URL), {
    method,
    headers: webHeaders(headers),
    signal: gone.signal,
    ...(body === undefined || method === "GET" ? {} : { body: new Uint8Array(body) }),
  });
}

function webHeaders(given: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return headers;
}

function toolsOf(given: unknown): McpCall["tools"] {
  if (given === undefined || given === "all") return "all";
  if (given === "core") return "core";
  throw new SandboxerError("bad_request", "tools must be core or all.", { hint: "Use /mcp, or /mcp?tools=core." });
}
