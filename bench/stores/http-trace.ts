import { FaultyProxy, type SeenRequest } from "../../test/kit/faulty-proxy.ts";
import type { CleanUp } from "../clean-up.ts";
import type { RequestKind, StoreTrace, TracedRequest } from "./trace.ts";

/** Stands between one server and its bucket; `endpoint` is where the server finds it. */
export interface HttpTrace extends StoreTrace {
  readonly endpoint: string;
}

export async function traceHttp(target: string, cleanUp: CleanUp): Promise<HttpTrace> {
  const proxy = await FaultyProxy.start(target);
  cleanUp.add(() => proxy.stop());
  return { endpoint: proxy.endpoint, requests: () => proxy.seen.map(requestOf) };
}

function requestOf(seen: SeenRequest): TracedRequest {
  const url = new URL(seen.path, "http://store");
  return { kind: kindOf(seen, url), key: keyOf(url) };
}

function kindOf({ method, headers }: SeenRequest, url: URL): RequestKind {
  const { searchParams: query, pathname } = url;
  if (method === "DELETE") return "delete";
  if (method === "HEAD") return "look";
  if (method !== "GET") {
    const conditional = "if-match" in headers || "if-none-match" in headers || query.has("ifGenerationMatch");
    return conditional ? "conditional write" : "write";
  }
  if (query.has("prefix") || query.has("list-type")) return "list";
  // Google's API returns the facts of an object unless its bytes are requested.
  return pathname.startsWith("/storage/v1/") && query.get("alt") !== "media" ? "look" : "read";
}

/** Buckets of tests keep their store below this. */
const PREFIX = "some/prefix/";

function keyOf({ pathname, searchParams: query }: URL): string {
  const name = query.get("prefix") ?? query.get("name") ?? decodeURIComponent(pathname);
  const at = name.indexOf(PREFIX);
  return at < 0 ? "" : name.slice(at + PREFIX.length);
}
