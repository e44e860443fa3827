import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import { ERRORS, errorBodySchema, parseObject, SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import { carriesKey } from "../access/shown-credential.ts";
import { requestOtherServer } from "./other-server-request.ts";
import { readText } from "./read-text.ts";
import { NOT_AGAIN, withKey } from "./relay-headers.ts";

export interface RelayedUpgrade {
  readonly server: OtherServer;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly authorization: string | undefined;
  /** That a server of the store relays it, and that the client has shown its encryption key. */
  readonly proofs: OutgoingHttpHeaders;
  /** The client's side, which nobody has read from or written to. */
  readonly client: Duplex;
  /** The bytes that came with the request. */
  readonly head: Buffer;
}

/** From the first byte to the other server until its response. */
const HANDSHAKE_MS = 10_000;
/** How long one side may take to read the other's last bytes. */
const FAREWELL_MS = 2_000;

/**
 * Passes the opening of a WebSocket on to another server, and from its agreement on the bytes of both sides, as fast as
 * each takes them. Rejects when the other server does not agree; the client has heard nothing then. `over` settles when
 * both sides have ended.
 */
export async function relaySocket({
  server,
  path,
  client,
  head,
  ...opening
}: RelayedUpgrade): Promise<{ readonly over: Promise<void> }> {
  const { request, failure } = requestOtherServer(server, { method: "GET", path, headers: upgradeHeaders(opening) });
  const timer = setTimeout(() => request.destroy(new Error("no answer in time")), HANDSHAKE_MS);
  const onGone = (): void => void request.destroy();
  client.once("close", onGone);
  try {
    const upgraded = Promise.withResolvers<{ answer: IncomingMessage; socket: Duplex; rest: Buffer }>();
    request.once("upgrade", (answer, socket, rest) => upgraded.resolve({ answer, socket, rest }));
    request.once("response", (answer: IncomingMessage) =>
      upgraded.resolve(
        refusal(server, answer).then((error) => {
          throw error;
        }),
      ),
    );
    request.once("error", (error) => upgraded.reject(failure(error)));
    request.end();
    const { answer, socket, rest } = await upgraded.promise;
    client.write(agreement(answer));
    if (rest.length > 0) client.write(rest);
    if (head.length > 0) socket.write(head);
    return { over: joined(client, socket) };
  } finally {
    clearTimeout(timer);
    client.off("close", onGone);
  }
}

function upgradeHeaders({
  headers,
  authorization,
  proofs,
}: Pick<RelayedUpgrade, "headers" | "authorization" | "proofs">): OutgoingHttpHeaders {
  const protocols = (headers["sec-websocket-protocol"] ?? "")
    .split(",")
    .map((offer) => offer.trim())
    .filter((offer) => offer !== "" && !carriesKey(offer));
  return {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": headers["sec-websocket-version"] ?? "13",
    // The same, so that the other server's answer is right for the client.
    "sec-websocket-key": headers["sec-websocket-key"] ?? "",
    ...(protocols.length === 0 ? {} : { "sec-websocket-protocol": protocols.join(", ") }),
    ...withKey(authorization),
    ...proofs,
    ...NOT_AGAIN,
  };
}

function agreement({ headers }: IncomingMessage): string {
  const protocol = headers["sec-websocket-protocol"];
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${headers["sec-websocket-accept"]}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** The error that another server answered a request with. */
export async function refusal({ url, instanceId }: OtherServer, answer: IncomingMessage): Promise<SandboxerError> {
  const text = await readText(answer).catch(() => "");
  answer.destroy();
  const details = { url, owner: instanceId };
  const body = errorBodySchema.safeParse(parseObject(text));
  if (body.success && Object.hasOwn(ERRORS, body.data.error.code)) {
    const { code, message, hint } = body.data.error;
    const told = code === "unauthorized" ? "permission_denied" : (code as ErrorCode);
    return new SandboxerError(told, `${url}: ${message}`, {
      hint,
      details: { ...body.data.error.details, ...details },
    });
  }
  return new SandboxerError("server_unreachable", `The server ${url} answered with ${answer.statusCode}.`, { details });
}

/** Both end together. The last bytes of one side still reach the other. */
export async function joined(client: Duplex, server: Duplex): Promise<void> {
  const end = (side: Duplex): void => {
    side.end();
    setTimeout(() => side.destroy(), FAREWELL_MS).unref();
  };
  const pass = (from: Duplex, to: Duplex): Promise<void> =>
    new Promise((resolve) => {
      from.on("error", () => from.destroy());
      from.once("end", () => [from, to].forEach(end));
      from.once("close", () => {
        end(to);
        resolve();
      });
      from.pipe(to);
    });
  await Promise.all([pass(client, server), pass(server, client)]);
}
