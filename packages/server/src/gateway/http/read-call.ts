import type { Readable } from "node:stream";
import { SandboxerError, type Route } from "@sandboxer/protocol";
import type { FastifyRequest } from "fastify";
import { requestKeysOf } from "../access/encryption-key.ts";
import type { Call } from "./handler.ts";

/** What a request asks for: its checked parts, and its headers. Throws for a header that makes no sense. */
export function readCall(request: FastifyRequest, signal: AbortSignal): Call<Route> {
  return {
    params: request.params as never,
    query: request.query as never,
    body: request.body as never,
    stream: request.body as Readable,
    signal,
    caller: request.caller,
    epoch: epochOf(request),
    idempotencyKey: idempotencyKeyOf(request),
    lastEventId: lastEventIdOf(request),
    // A client that goes away ends nothing that it has asked for: it may ask again, with the same key.
    options: { encryption: requestKeysOf(request.headers, request.caller.principal) },
    accepts: (contentType) => (request.headers.accept ?? "").includes(contentType),
  };
}

/** Whether the client wants the operation's record at once, and not the answer. */
export function wantsNoWait(request: FastifyRequest): boolean {
  const { prefer } = request.headers;
  return (Array.isArray(prefer) ? prefer.join(",") : (prefer ?? "")).includes("respond-async");
}

function epochOf(request: FastifyRequest): number | undefined {
  const header = request.headers["if-sandbox-epoch"];
  if (header === undefined) return undefined;
  if (typeof header === "string" && /^[1-9][0-9]{0,14}$/.test(header)) return Number(header);
  throw new SandboxerError("bad_request", "If-Sandbox-Epoch must be the epoch of the sandbox's record, an integer.");
}

function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const header = request.headers["idempotency-key"];
  if (header === undefined) return undefined;
  if (typeof header === "string" && /^[\x21-\x7e]{1,200}$/.test(header)) return header;
  throw new SandboxerError("bad_request", "Idempotency-Key must be 1 to 200 visible ASCII characters.");
}

function lastEventIdOf({ headers }: FastifyRequest): string | undefined {
  const header = headers["last-event-id"];
  return typeof header === "string" && header !== "" ? header : undefined;
}
