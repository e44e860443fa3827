import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { SandboxerError } from "@sandboxer/protocol";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import { request as httpRequest } from "../../support/node-http.ts";

export interface PassedRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
}

export interface OpenRequest {
  readonly request: ClientRequest;
  /** The head of the response; its body follows. Rejects with the error for the caller. */
  readonly answer: () => Promise<IncomingMessage>;
  /** The error for the caller, once the request has failed. */
  readonly failure: (cause: unknown) => SandboxerError;
}

const CONNECT_MS = 5_000;
/** Detects a server that disappears silently, however long its response takes. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Starts a request to another server of the store. Each request has its own connection: a reused one may be closed by
 * the other side just then, and the fate of the request would be unknown.
 */
export function requestOtherServer(server: OtherServer, { method, path, headers }: PassedRequest): OpenRequest {
  const base = addressOf(server);
  const secure = base.protocol === "https:";
  const request = (secure ? process.getBuiltinModule("node:https").request : httpRequest)(base, {
    method,
    path: base.pathname.replace(/\/+$/, "") + path,
    headers,
    agent: false,
    ...server.tls,
  });
  let reached = false;
  const timer = setTimeout(() => request.destroy(new Error(`no connection within ${CONNECT_MS / 1000} s`)), CONNECT_MS);
  request.once("socket", (socket: Socket) => {
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
    socket.once(secure ? "secureConnect" : "connect", () => {
      reached = true;
      clearTimeout(timer);
    });
  });
  request.once("close", () => clearTimeout(timer));
  // It may also fail when nobody waits for it any more.
  request.on("error", () => {});
  const failure = (cause: unknown): SandboxerError => unreachable(server, reached, cause);
  const answer = (): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      request.once("response", resolve);
      request.once("error", (error) => reject(failure(error)));
    });
  return { request, answer, failure };
}

/** The URL comes from the store, where anyone with access may have written it. */
function addressOf(server: OtherServer): URL {
  const base = URL.canParse(server.url) ? new URL(server.url) : undefined;
  if (base?.protocol === "http:" && server.tls !== undefined)
    throw unreachable(server, false, new Error("--peer-ca is set, and its --advertise-url is not https"));
  if (base?.protocol === "http:" || base?.protocol === "https:") return base;
  throw unreachable(server, false, new Error("it is not a server URL"));
}

function unreachable({ url, instanceId }: OtherServer, reached: boolean, cause: unknown): SandboxerError {
  const reason = cause instanceof Error && cause.message !== "" ? ` (${cause.message})` : "";
  const what = reached ? "did not answer" : "cannot be reached from this server";
  return new SandboxerError("server_unreachable", `The server ${url}, which runs the sandbox, ${what}${reason}.`, {
    cause,
    hint: "Try again. Check that the server runs and that its --advertise-url is right, or move the sandbox to this server with POST …/resume.",
    details: { url, owner: instanceId, reached },
  });
}
