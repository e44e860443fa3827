import type { IncomingHttpHeaders } from "node:http";
import { KEY_HEADER } from "@sandboxer/protocol";
import type { AccessRequest } from "../access/shown-credential.ts";

/** Older clients only take keys of this form: the bytes of a key in hex. */
const HEX_KEY = /^e2b_((?:[0-9a-f]{2})+)$/i;
const PRINTABLE = /^[\x21-\x7e]+$/;

/** The key in `X-API-KEY`, in whichever of the two forms. */
export function apiKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const shown = headers["x-api-key"];
  if (typeof shown !== "string" || shown === "") return undefined;
  const [, hex] = HEX_KEY.exec(shown) ?? [];
  const text = hex === undefined ? "" : Buffer.from(hex, "hex").toString("latin1");
  return PRINTABLE.test(text) ? text : shown;
}

/**
 * A request with the credential of E2B's dialect only: below `/e2b`, `X-API-KEY` is the client's own header, also if
 * the server reads keys from another one. No cookie counts.
 */
export function keyedAsE2b(request: AccessRequest): AccessRequest {
  const { cookie: _, "x-api-key": __, authorization, ...headers } = request.headers;
  const key = apiKeyOf(request.headers);
  // Clients may also send the access token of an account at E2B.
  if (key !== undefined) return { ...request, headers: { ...headers, [KEY_HEADER]: key } };
  return { ...request, headers: authorization === undefined ? headers : { ...headers, authorization } };
}
