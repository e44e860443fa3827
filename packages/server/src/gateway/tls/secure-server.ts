import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { PEER_HEADER, RELAYED_HEADER } from "../access/peer-secret.ts";
import { RequestOverHttp2, ResponseOverHttp2 } from "./http2-messages.ts";

/** The headers with which servers prove that they are of the same store. */
const PROOFS = [PEER_HEADER, RELAYED_HEADER];

/** A certificate chain and its key, in PEM. */
export interface Credentials {
  readonly cert: string;
  readonly key: string;
  /**
   * Authorities, in PEM: calls between servers count only over connections with a certificate that comes from them.
   * Undefined: the proof of the shared secret is enough.
   */
  readonly clientCa?: string | undefined;
}

export interface SecureServerOptions {
  readonly credentials: Credentials;
  /** Takes a listener for renewed credentials. */
  readonly onRenewed: (listener: (renewed: Credentials) => void) => void;
}

/** Requests of one connection at the same time. Browsers use up to 100. */
const MAX_STREAMS = 128;
const HANDSHAKE_MS = 10_000;
const KEEP_ALIVE_MS = 72_000;
/** A connection of HTTP/2 without traffic is closed after its last response; clients open another one. */
const IDLE_MS = 75_000;

/**
 * A server for HTTP/2, and HTTP/1.1 for clients that ask for it: WebSockets always do. Node's type for both is another
 * one, but everything that is used of a plain server is there. New credentials apply to new connections.
 */
export function secureServer({ credentials, onRenewed }: SecureServerOptions, handler: RequestListener): Server {
  const { clientCa } = credentials;
  const asksForCertificate = clientCa !== undefined;
  const server = createSecureServer(
    {
      ...contextOf(credentials),
      // Clients need none: a connection without one is only no server's.
      ...(asksForCertificate ? { requestCert: true, rejectUnauthorized: false } : {}),
      allowHTTP1: true,
      handshakeTimeout: HANDSHAKE_MS,
      settings: { maxConcurrentStreams: MAX_STREAMS },
      Http2ServerRequest: RequestOverHttp2,
      Http2ServerResponse: ResponseOverHttp2,
    },
    ((request: IncomingMessage, response: ServerResponse) => {
      if (asksForCertificate) forgetUnproved(request);
      handler(request, response);
    }) as never,
  );
  // Before those that are added later.
  if (asksForCertificate) server.on("upgrade", forgetUnproved);
  // Also those that have not finished their handshake.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session) => session.setTimeout(IDLE_MS, () => session.close()));
  onRenewed((renewed) => server.setSecureContext(contextOf(renewed)));
  const plain = server as unknown as Server;
  // As Fastify sets them: bodies have time limits of their own, and may take longer than Node's.
  plain.requestTimeout = 0;
  plain.keepAliveTimeout = KEEP_ALIVE_MS;
  plain.closeAllConnections = () => sockets.forEach((socket) => socket.destroy());
  return plain;
}

function contextOf({ cert, key, clientCa }: Credentials): { cert: string; key: string; ca?: string } {
  return { cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

/** Whoever knows the secret of the store, and has no certificate, is not one of its servers. */
function forgetUnproved({ socket, headers }: IncomingMessage): void {
  if ((socket as TLSSocket).authorized) return;
  for (const name of PROOFS) delete headers[name];
}
