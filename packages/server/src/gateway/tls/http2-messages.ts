import type { IncomingHttpHeaders } from "node:http";
import { Http2ServerRequest, Http2ServerResponse, type IncomingHttpHeaders as Http2Headers } from "node:http2";

/** A request over HTTP/2 with the headers that it would have over HTTP/1.1, so that nothing behind it needs to know. */
export class RequestOverHttp2 extends Http2ServerRequest {
  constructor(...[stream, headers, ...rest]: ConstructorParameters<typeof Http2ServerRequest>) {
    super(stream, headers, ...rest);
    // Not in all of Node's types.
    const { endAfterHeaders } = stream as unknown as { readonly endAfterHeaders: boolean };
    Object.defineProperty(this, "headers", { value: plainHeaders(headers, !endAfterHeaders) });
  }
}

function plainHeaders(headers: Http2Headers, hasBody: boolean): IncomingHttpHeaders {
  const { host, ...rest } = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(":")));
  // `:authority` is what browsers and proxies decide by, so a different `host` counts for nothing.
  const asked = headers[":authority"] ?? host;
  const isChunked = hasBody && headers["content-length"] === undefined;
  return {
    ...rest,
    ...(typeof asked === "string" ? { host: asked } : {}),
    ...(isChunked ? { "transfer-encoding": "chunked" } : {}),
  };
}

/** A response over HTTP/2 that says whether it can still be sent, as Node's response over HTTP/1.1 does. */
export class ResponseOverHttp2 extends Http2ServerResponse {
  constructor(...[stream, ...rest]: ConstructorParameters<typeof Http2ServerResponse>) {
    super(stream, ...rest);
    Object.defineProperty(this, "destroyed", { get: () => stream.destroyed });
  }
}
