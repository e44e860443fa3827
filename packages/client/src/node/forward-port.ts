import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { SandboxHandle } from "../sandbox-handle.ts";
import { errorOfBody, unreachable } from "../wire/errors.ts";
import { addressOf } from "../wire/request.ts";

const CONNECT_PATH = "/v1/sandboxes/{id}/connect/{port}";
const UPGRADE = "sandboxer-port";
/** The body of an error has a few hundred bytes. */
const MAX_ERROR_BYTES = 64 * 1024;

export interface ForwardOptions {
  /** The local port; 0: a free one. Default: the same as inside. */
  readonly localPort?: number;
  /** The local address to listen on. Default: 127.0.0.1. */
  readonly localAddress?: string;
  /** A connection could not be opened; the local side of it was closed. */
  readonly onError?: (error: SandboxerError) => void;
}

export interface ForwardedPort extends AsyncDisposable {
  readonly address: string;
  readonly port: number;
  /** Closes the local port and all connections. */
  close(): Promise<void>;
}

/** Opens a TCP connection to a port inside a sandbox, which is resumed if it is paused. */
export async function connectPort(sandbox: SandboxHandle, port: number): Promise<Duplex> {
  const { url, apiKey, encryptionKey } = sandbox.client.transport;
  const address = addressOf(url, CONNECT_PATH, { params: { id: sandbox.id, port: String(port) } });
  const headers = {
    connection: "Upgrade",
    upgrade: UPGRADE,
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}`, "sandboxer-key": apiKey }),
    ...(apiKey === undefined && sandbox.token !== undefined ? { "sandboxer-token": sandbox.token } : {}),
    ...(encryptionKey === undefined ? {} : { "sandboxer-encryption-key": encryptionKey }),
  };
  const request = (address.protocol === "https:" ? httpsRequest : httpRequest)(address, { headers, agent: false });
  const opened = Promise.withResolvers<Duplex>();
  request.once("upgrade", (_answer, socket: Duplex, head: Buffer) => {
    if (head.length > 0) socket.unshift(head);
    opened.resolve(socket);
  });
  request.once("response", (answer) => void errorOf(answer).then(opened.reject, opened.reject));
  request.on("error", (error) => opened.reject(unreachable(address.href, error)));
  request.end();
  return await opened.promise;
}

/** Listens on a local port, and passes each connection on to a port inside a sandbox. */
export async function forwardPort(
  sandbox: SandboxHandle,
  port: number,
  { localPort = port, localAddress = "127.0.0.1", onError = () => {} }: ForwardOptions = {},
): Promise<ForwardedPort> {
  const locals = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (local) => {
    locals.add(local);
    local.once("close", () => locals.delete(local)).on("error", () => local.destroy());
    connectPort(sandbox, port).then(
      (inside) => join(local, inside),
      (error: SandboxerError) => {
        local.destroy();
        onError(error);
      },
    );
  });
  await listen(server, localPort, localAddress);
  const close = async (): Promise<void> => {
    for (const local of locals) local.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  const bound = server.address();
  const boundPort = typeof bound === "object" && bound !== null ? bound.port : localPort;
  return { address: localAddress, port: boundPort, close, [Symbol.asyncDispose]: close };
}

function join(local: Socket, inside: Duplex): void {
  inside.on("error", () => inside.destroy());
  local.once("close", () => inside.destroy());
  inside.once("close", () => local.destroySoon());
  if (local.destroyed) return void inside.destroy();
  // The end of the local side is not the end: the answer may follow.
  local.pipe(inside, { end: false });
  inside.pipe(local);
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  const listening = Promise.withResolvers<void>();
  server.once("listening", listening.resolve).once("error", listening.reject);
  server.listen(port, host);
  try {
    await listening.promise;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const text = code === "EADDRINUSE" ? `Port ${port} on ${host} is in use.` : message;
    throw new SandboxerError("bad_request", text, { cause, hint: "Choose another local port, or 0 for a free one." });
  }
}

async function errorOf(answer: IncomingMessage): Promise<SandboxerError> {
  let text = "";
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MAX_ERROR_BYTES) break;
  }
  answer.destroy();
  return errorOfBody(text, answer.statusCode ?? 500);
}
