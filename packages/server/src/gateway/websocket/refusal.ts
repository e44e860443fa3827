import type { Duplex } from "node:stream";
import type { SandboxerError } from "@sandboxer/protocol";
import { NEVER_RENDERED } from "../console/security-headers.ts";
import { STATUS_CODES } from "../../support/node-http.ts";

/** How long a client may take to read the response and close its side. */
const FAREWELL_MS = 1_000;

/** Answers a refused WebSocket request with the same body as an HTTP error. */
export function refuseWith(
  socket: Duplex,
  { code, message, hint, details, row }: SandboxerError,
  status = row.httpStatus,
): void {
  const body = JSON.stringify({ error: { code, message, hint, retryable: row.retryable, details } });
  const retryAfter = details["retry_after_seconds"];
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
    ...Object.entries(NEVER_RENDERED).map(([name, value]) => `${name}: ${value}`),
    ...(code === "unauthorized" ? ["WWW-Authenticate: Bearer"] : []),
    ...(typeof retryAfter === "number" ? [`Retry-After: ${retryAfter}`] : []),
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
  socket.resume();
  const cut = setTimeout(() => socket.destroy(), FAREWELL_MS).unref();
  socket.once("close", () => clearTimeout(cut));
}
