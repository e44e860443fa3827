import type { RequestListener, Server } from "node:http";
import { createSecureServer } from "node:http2";
import type { Socket } from "node:net";
import { RequestOverHttp2, ResponseOverHttp2 } from "./http2-messages.ts";

/** A certificate chain and its key, in PEM. */
export interface Credentials {
  readonly cert: string;
  readonly key: string;
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
  const server = createSecureServer(
    {
      ...credentials,
      allowHTTP1: true,
      handshakeTimeout: HANDSHAKE_MS,
      settings: { maxConcurrentStreams: MAX_STREAMS },
      Http2ServerRequest: RequestOverHttp2,
      Http2ServerResponse: ResponseOverHttp2,
    },
    handler as never,
  );
  // Also those that have not finished their handshake.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session) => session.setTimeout(IDLE_MS, () => session.close()));
  onRenewed((renewed) => server.setSecureContext(renewed));
  const plain = server as unknown as Server;
  // As Fastify sets them: bodies have time limits of their own, and may take longer than Node's.
  plain.requestTimeout = 0;
  plain.keepAliveTimeout = KEEP_ALIVE_MS;
  plain.closeAllConnections = () => sockets.forEach((socket) => socket.destroy());
  return plain;
}
