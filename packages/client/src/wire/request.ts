import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Bytes } from "./call-types.ts";
import type { PlainRoute } from "./route-table.ts";

interface RequestParts {
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: unknown;
}

/** The URL of a call: the base may have its own path, behind a proxy. */
export function addressOf(base: string, path: string, { params = {}, query = {} }: RequestParts): URL {
  const url = baseUrl(base);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segment(name, params[name]));
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${filled}`;
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  }
  return url;
}

export function baseUrl(text: string): URL {
  const url = httpUrl(text.replace(/^ws/, "http"));
  if (url !== undefined) return url;
  throw new SandboxerError("bad_request", `"${text}" is not the URL of a server.`, {
    hint: "Use a URL such as http://127.0.0.1:8080.",
  });
}

/** Undefined when the text is no URL, or one of another protocol. Node 22.0 and older browsers have no `URL.parse`. */
export function httpUrl(text: string): URL | undefined {
  return /^https?:/i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
}

/** Whether the same request can be sent again. */
export function isOneShot(body: unknown): boolean {
  return body instanceof ReadableStream || (typeof body === "object" && body !== null && Symbol.asyncIterator in body);
}

/** The options for fetch; a stream in Node needs `duplex`. */
export function bodyOf(route: PlainRoute, body: unknown): RequestInit & { duplex?: "half" } {
  if (body === undefined) return {};
  if (route.contentType === undefined) {
    return { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  }
  const headers = { "content-type": route.contentType };
  const bytes = body as Bytes;
  if (!isOneShot(bytes)) return { body: bytes as NonNullable<RequestInit["body"]>, headers };
  return {
    body: streamOf(bytes as AsyncIterable<Uint8Array>) as NonNullable<RequestInit["body"]>,
    headers,
    duplex: "half",
  };
}

export function streamOf(bytes: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  if (bytes instanceof ReadableStream) return bytes;
  const iterator = bytes[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

function segment(name: string, value: unknown): string {
  // An empty segment, or a dot, would be another path.
  if (typeof value === "string" && value !== "" && value !== "." && value !== "..") return encodeURIComponent(value);
  throw new SandboxerError("bad_request", `"${String(value)}" is not a valid ${name} for a request.`);
}
