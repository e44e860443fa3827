import { expect, test } from "vitest";
import { requestHeaders } from "../../../src/gateway/preview/preview-headers.ts";

const forwarded = {
  host: "localhost:8000",
  askedHost: "asked.test",
  protocol: "http",
  clientAddress: "192.0.2.1",
  credentials: new Set(["authorization"]),
  cookies: true,
} as const;

test("hop-by-hop, forwarding and server headers are left out, but never the length of a body", () => {
  const passed = requestHeaders(
    {
      host: "asked.test",
      connection: "close, X-Hop, Content-Length",
      "x-hop": "1",
      "content-length": "5",
      authorization: "Bearer ours",
      cookie: "a=1; sandboxer_preview=x; __Host-sandboxer_session=y; sandboxer_session=z; b=2",
      "proxy-authorization": "Basic x",
      "sandboxer-encryption-key": "k",
      "sec-websocket-protocol": "sandboxer.bearer.a2V5, chat, sandboxer.encryption-key.a2V5",
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-user": "root",
      forwarded: "for=203.0.113.9",
      accept: "*/*",
    },
    forwarded,
  );
  expect(passed).toEqual({
    host: "localhost:8000",
    "content-length": "5",
    cookie: "a=1; b=2",
    "sec-websocket-protocol": "chat",
    "x-forwarded-for": "192.0.2.1",
    "x-forwarded-host": "asked.test",
    "x-forwarded-proto": "http",
    accept: "*/*",
  });
});
