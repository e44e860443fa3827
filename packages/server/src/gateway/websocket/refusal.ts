import type { Duplex } from "node:stream";
import type { SandboxerError } from "@sandboxer/protocol";
import { STATUS_CODES } from "../../support/node-http.ts";

/** Answers a request for a WebSocket that does not become one. */
export function refuse(socket: Duplex, status: number, error: object, headers: readonly string[] = []): void {
  const body = JSON.stringify({ error });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
    ...headers,
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** The same body as that of an HTTP answer. */
export function refuseWith(socket: Duplex, { code, message, hint, details, row }: SandboxerError): void {
  const retryAfter = details["retry_after_seconds"];
  const headers = [
    ...(code === "unauthorized" ? ["WWW-Authenticate: Bearer"] : []),
    ...(typeof retryAfter === "number" ? [`Retry-After: ${retryAfter}`] : []),
  ];
  refuse(socket, row.httpStatus, { code, message, hint, retryable: row.retryable, details }, headers);
}
