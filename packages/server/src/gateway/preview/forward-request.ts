import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { request as httpRequest, STATUS_CODES } from "../../support/node-http.ts";
import { joined } from "../relay/socket-relay.ts";

export interface ForwardedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** A fresh connection to the program inside; ends with the request. */
  readonly stream: Duplex;
  /** The headers of the program's response, for the client. */
  readonly headersOf: (answer: IncomingMessage) => Record<string, string[]>;
}

/**
 * Sends a request to a program inside, and its response back: each is streamed as fast as the other side reads it.
 * Rejects if the program gives no valid response; nothing was sent to the client then. Resolves when the response has
 * ended or the client has disconnected.
 */
export async function forwardRequest(
  client: IncomingMessage,
  answer: ServerResponse,
  { stream, headersOf, ...sent }: ForwardedRequest,
): Promise<void> {
  const request = httpRequest({
    ...sent,
    headers: { ...sent.headers, connection: "close" },
    createConnection: () => stream,
  });
  const response = Promise.withResolvers<IncomingMessage>();
  request.once("response", response.resolve);
  request.on("error", (error) => response.reject(noAnswer(error)));
  // A program must not switch protocols without a request for it. Node reports no error then.
  request.once("upgrade", (_, socket) => {
    socket.destroy();
    response.reject(noAnswer(new Error("it switched protocols")));
  });
  const closed = new Promise<void>((resolve) => answer.once("close", resolve));
  void closed.then(() => stream.destroy());
  if (answer.destroyed) stream.destroy();
  client.pipe(request);
  try {
    const inside = await response.promise;
    const status = inside.statusCode ?? 502;
    if (client.httpVersionMajor === 2) answer.writeHead(status, joinedHeaders(headersOf(inside)));
    else answer.writeHead(status, inside.statusMessage, headersOf(inside));
    // The head goes out at once: events may follow much later.
    answer.flushHeaders();
    // A response that breaks off must not look complete.
    inside.on("error", () => answer.destroy());
    inside.pipe(answer);
    await closed;
  } finally {
    client.unpipe(request);
    stream.destroy();
  }
}

/**
 * Sends the opening of a WebSocket to a program inside. If the program agrees, both sides are joined until one ends;
 * otherwise the client gets the program's response. Rejects if there is none.
 */
export async function forwardUpgrade(
  socket: Duplex,
  head: Buffer,
  { stream, headersOf, ...sent }: ForwardedRequest,
): Promise<void> {
  const headers = { ...sent.headers, connection: "Upgrade", upgrade: "websocket" };
  const request = httpRequest({ ...sent, headers, createConnection: () => stream });
  const onGone = (): void => void stream.destroy();
  socket.once("close", onGone);
  const answered = Promise.withResolvers<{ answer: IncomingMessage; agreed: boolean }>();
  let rest: Buffer = Buffer.alloc(0);
  request.once("upgrade", (answer, _stream, first) => {
    rest = first;
    answered.resolve({ answer, agreed: true });
  });
  request.once("response", (answer) => answered.resolve({ answer, agreed: false }));
  request.on("error", (error) => answered.reject(noAnswer(error)));
  request.end();
  try {
    const { answer, agreed } = await answered.promise;
    const last = agreed ? { connection: ["Upgrade"], upgrade: ["websocket"] } : { connection: ["close"] };
    socket.write(headText(answer, { ...headersOf(answer), ...last }));
    if (agreed) {
      if (rest.length > 0) socket.write(rest);
      if (head.length > 0) stream.write(head);
      return await joined(socket, stream);
    }
    answer.pipe(socket);
    await new Promise<void>((resolve) => socket.once("close", resolve));
  } finally {
    socket.off("close", onGone);
    stream.destroy();
  }
}

/** HTTP/2 takes most headers once; several lines of one header mean the same as one line with commas. */
function joinedHeaders(headers: Readonly<Record<string, readonly string[]>>): OutgoingHttpHeaders {
  const entries = Object.entries(headers).map(([name, values]) =>
    name === "set-cookie" ? [name, [...values]] : [name, values.join(", ")],
  );
  return Object.fromEntries(entries) as OutgoingHttpHeaders;
}

/** Node has parsed the values, so that none of them contains a line break. */
function headText({ statusCode = 502 }: IncomingMessage, headers: Readonly<Record<string, readonly string[]>>): string {
  const lines = Object.entries(headers).flatMap(([name, values]) => values.map((value) => `${name}: ${value}`));
  return [`HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ""}`, ...lines, "", ""].join("\r\n");
}

function noAnswer(cause: Error): SandboxerError {
  return new SandboxerError(
    "backend_unavailable",
    `The program on the port gave no HTTP response (${cause.message}).`,
    {
      cause,
      hint: "Check the program's output with `sandboxer logs`, and that it speaks HTTP. For other protocols use `sandboxer forward`.",
    },
  );
}
