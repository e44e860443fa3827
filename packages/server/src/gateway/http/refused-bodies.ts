import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";

const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;
const DISCARD_MS = 30_000;

/**
 * Lets a client finish a body that is too large. Most clients read the response only after that, and would see only a
 * broken connection if the server closed it.
 */
export function discardRefusedBodies(app: FastifyInstance): void {
  app.addHook("onSend", async ({ raw }, reply) => {
    if (reply.statusCode !== 413 || raw.complete) return;
    reply.removeHeader("connection");
    discard(raw);
  });
}

function discard(request: IncomingMessage): void {
  let leftBytes = MAX_DISCARDED_BYTES;
  const cut = (): void => void request.socket.destroy();
  const timer = setTimeout(cut, DISCARD_MS).unref();
  request.once("close", () => clearTimeout(timer));
  request.on("data", (chunk: Buffer) => {
    leftBytes -= chunk.length;
    if (leftBytes < 0) cut();
  });
}
