import { request as openRequest, type IncomingMessage, type Server } from "node:http";
import { duplexPair, Readable } from "node:stream";

/** Statuses whose responses have no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * A `fetch` whose requests enter this server as if they came from `remoteAddress`, without a network: each one gets a
 * connection in memory. So keys, scopes, limits and the audit log apply to them as to every other request. It takes
 * bodies that fit into memory.
 */
export function ownFetch(server: Server, remoteAddress: string | undefined): typeof globalThis.fetch {
  return async (input, init) => {
    const { method, url, headers, body, signal } = new Request(input, init);
    const bytes = body === null ? undefined : await new Response(body).bytes();
    const { pathname, search, host } = new URL(url);
    const [client, accepted] = duplexPair();
    client.once("close", () => accepted.destroy());
    accepted.once("close", () => client.destroy());
    Object.defineProperty(accepted, "remoteAddress", { value: remoteAddress });
    server.emit("connection", accepted);
    const answered = Promise.withResolvers<IncomingMessage>();
    const request = openRequest({
      method,
      path: pathname + search,
      headers: { ...Object.fromEntries(headers), host, connection: "close" },
      createConnection: () => client,
      signal,
    });
    request.once("response", answered.resolve).on("error", answered.reject);
    request.end(bytes);
    const incoming = await answered.promise;
    const status = incoming.statusCode ?? 500;
    const stream = WITHOUT_BODY.has(status) ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
    return new Response(stream, { status, headers: headersOf(incoming) });
  };
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}
