import { PROCESS_ATTACH_PATH, ROUTES, type Route } from "@sandboxer/protocol";
import fc from "fast-check";
import { z } from "zod";
import { hardJson, likeSchema, text, type JsonSchema } from "./values.ts";

/** A request as bytes, with placeholders. `pieces`: how many TCP segments it is sent in. */
export interface HostileRequest {
  readonly head: string;
  /** In base64, so that a failure can be printed. */
  readonly body: string;
  readonly chunked: boolean;
  readonly pieces: number;
  /** Says nothing more after it, so that a server that waits for the rest sees that none comes. */
  readonly ends: boolean;
}

const OTHER_PATHS = ["/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/internal/instance", "/internal/ring/x"];
const METHODS = [
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "TRACE",
  "CONNECT",
  "PROPFIND",
  "get",
  "X",
];
const CONTENT_TYPES = [
  "application/json",
  "application/json; charset=utf-16",
  "application/connect+json",
  "application/octet-stream",
  "application/x-tar",
  "text/plain",
  "multipart/form-data; boundary=x",
  "application/x-ndjson",
  "",
  ";",
  "application/json;".repeat(50),
];

/** Where an empty object is no good body. */
const GOOD_BODIES: Readonly<Record<string, readonly object[]>> = {
  "/v1/sandboxes": [{}, { enable_checkpoint: true }, { user: "root" }],
  "/v1/sandboxes/acquire": [{ key: "k" }],
  "/v1/sandboxes/{id}/exec": [
    { shell: "echo hi" },
    { shell: "echo hi", user: "root" },
    { command: ["cat"], detach: true },
    { language: "bash", code: "exit 3" },
  ],
  "/v1/sandboxes/{id}/rewind": [{ snapshot: "{{snapshot}}" }, { snapshot_id: "{{snapshot}}" }],
};

const HEADER_NAMES = [
  "Idempotency-Key",
  "If-Sandbox-Epoch",
  "Last-Event-ID",
  "Prefer",
  "Accept",
  "Range",
  "If-Match",
  "Cookie",
  "Authorization",
  "X-API-Key",
  "Sandboxer-Key",
  "Sandboxer-Encryption-Key",
  "Sandboxer-Relay",
  "Origin",
  "X-Forwarded-For",
  "Forwarded",
  "Via",
  "Sec-Fetch-Site",
  "Accept-Encoding",
  "Content-Encoding",
  "TE",
  "Expect",
  "Upgrade",
  "Sec-WebSocket-Key",
  "Sec-WebSocket-Version",
  "Sec-WebSocket-Protocol",
  "Host",
];
const HEADER_VALUES = [
  "respond-async",
  "application/x-ndjson",
  "text/event-stream",
  "bytes=0-",
  "1",
  "Bearer x",
  "*",
  "gzip",
  "100-continue",
  "websocket",
  "allow",
  "null",
  "13",
  `Bearer ${"a".repeat(3000)}`,
  "A".repeat(44),
];

/** Headers that a client may send; each may be repeated, or invalid. */
const header: fc.Arbitrary<readonly [string, string]> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.tuple(
      fc.constantFrom(...HEADER_NAMES),
      fc.oneof(
        {
          weight: 3,
          arbitrary: fc.constantFrom(...HEADER_VALUES),
        },
        { weight: 1, arbitrary: text.map(onOneLine) },
      ),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.stringMatching(/^[A-Za-z-]{1,20}$/), text.map(onOneLine)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ["Transfer-Encoding", "chunked, chunked"] as const,
      ["Transfer-Encoding", "identity"] as const,
      ["Content-Length", "-1"] as const,
      ["Content-Length", "99999999999999999999"] as const,
      ["bad header", "x"] as const,
      ["x", "\u0001\u0000"] as const,
      ["X-Many", "x".repeat(20_000)] as const,
    ),
  },
);

/** E2B's clients name the sandbox and the service in headers, and show a token. */
function inside(port: number): readonly string[] {
  return [
    "E2b-Sandbox-Id: {{sandbox}}",
    `E2b-Sandbox-Port: ${port}`,
    "X-Access-Token: {{envd}}",
    "E2b-Traffic-Access-Token: {{traffic}}",
  ];
}
const ENVD = inside(49_983);
const PROCESS = { selector: { pid: 1 } };

/** The dialect of E2B, the Model Context Protocol and ports, which the table of routes does not have. */
const OTHER_DIALECTS: readonly HostileRoute[] = [
  ...["GET", "POST"].map((method) => ({ method, path: "/e2b/sandboxes", body: z.object({ templateID: z.string() }) })),
  ...["GET", "DELETE"].map((method) => ({ method, path: "/e2b/sandboxes/{id}" })),
  ...["pause", "resume", "connect", "timeout", "refreshes", "fork", "snapshots"].map((verb) => ({
    method: "POST",
    path: `/e2b/sandboxes/{id}/${verb}`,
    body: z.object({ timeout: z.number().optional(), duration: z.number().optional(), name: z.string().optional() }),
  })),
  { method: "GET", path: "/e2b/v2/sandboxes", query: z.object({ limit: z.number(), nextToken: z.string() }) },
  { method: "GET", path: "/e2b/metrics", lines: ENVD },
  { method: "GET", path: "/e2b/envs", lines: ENVD },
  ...["GET", "POST"].map((method) => ({
    method,
    path: "/e2b/files",
    query: z.object({ path: z.string(), username: z.string().optional() }),
    lines: ENVD,
  })),
  { method: "GET", path: "/files", query: z.object({ path: z.string(), signature: z.string() }) },
  ...["Stat", "ListDir", "MakeDir", "Remove", "CreateWatcher", "WatchDir"].map((call) => ({
    method: "POST",
    path: `/e2b/filesystem.Filesystem/${call}`,
    body: z.object({ path: z.string(), depth: z.number().optional() }),
    lines: ENVD,
  })),
  { method: "POST", path: "/e2b/process.Process/Start", good: { process: { cmd: "echo" } }, lines: ENVD },
  { method: "POST", path: "/e2b/process.Process/List", lines: ENVD },
  { method: "POST", path: "/e2b/process.Process/SendSignal", good: { ...PROCESS, signal: 15 }, lines: ENVD },
  { method: "POST", path: "/e2b/process.Process/Update", good: PROCESS, lines: ENVD },
  { method: "POST", path: "/e2b/process.Process/StreamInput", lines: ENVD },
  { method: "POST", path: "/e2b/execute", body: z.object({ code: z.string() }), lines: inside(49_999) },
  { method: "POST", path: "/e2b/contexts", good: { language: "python" }, lines: inside(49_999) },
  { method: "GET", path: "/e2b/", lines: inside(8000) },
  {
    method: "POST",
    path: "/mcp",
    good: { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} },
    lines: ["Accept: application/json, text/event-stream"],
  },
  { method: "GET", path: "/v1/sandboxes/{id}/ports/8000/" },
];

type HostileRoute = {
  readonly method: string;
  readonly path: string;
  readonly query?: Route["query"];
  readonly body?: Route["body"];
  /** A body that is right. */
  readonly good?: object;
  /** Headers that it always has. */
  readonly lines?: readonly string[];
};

/** Requests for a route of the table with about everything about them right, or something wrong. */
function requestTo(route: HostileRoute): fc.Arbitrary<HostileRequest> {
  const schema = route.query === undefined ? undefined : schemaOf(route.query);
  const body = route.good === undefined ? route.body : z.looseObject({});
  const bodySchema = isJson(body) ? schemaOf(body) : undefined;
  const jsonBody =
    bodySchema === undefined
      ? hardJson
      : fc
          .tuple(
            fc.constantFrom(...(route.good === undefined ? (GOOD_BODIES[route.path] ?? [{}]) : [route.good])),
            fc.oneof(fc.constant({}), likeSchema(bodySchema)),
          )
          .map(([good, more]) => JSON.stringify(isRecord(more) ? { ...good, ...more } : more));
  return fc
    .record({
      method: fc.oneof({ weight: 9, arbitrary: fc.constant(route.method) }, fc.constantFrom(...METHODS)),
      path: pathOf(route.path),
      query:
        schema === undefined
          ? fc.constant({})
          : fc.oneof({ weight: 3, arbitrary: likeSchema(schema) }, fc.constant({})),
      rawQuery: fc.oneof(
        { weight: 8, arbitrary: fc.constant("") },
        text.map((value) => `?${encodeURI(wellFormed(value))}`),
        text,
      ),
      contentType: fc.oneof(
        { weight: 6, arbitrary: fc.constant("application/json") },
        fc.constantFrom(...CONTENT_TYPES),
      ),
      headers: fc.oneof(fc.array(header, { maxLength: 0 }), fc.array(header, { maxLength: 3 })),
      body: fc.oneof(
        { weight: 6, arbitrary: jsonBody.map((json) => Buffer.from(json ?? "")) },
        { weight: 1, arbitrary: hardJson.map((json) => Buffer.from(json)) },
        { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
        { weight: 1, arbitrary: fc.constant(Buffer.alloc(0)) },
      ),
      chunked: fc.nat(9).map((roll) => roll === 0),
      /** Says more or less than comes. */
      lengthError: fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, fc.integer({ min: -20, max: 200 })),
      version: fc.oneof(
        { weight: 20, arbitrary: fc.constant("HTTP/1.1") },
        fc.constantFrom("HTTP/1.0", "HTTP/9.9", ""),
      ),
      pieces: fc.constantFrom(1, 1, 1, 2, 5),
    })
    .map(({ method, path, query, rawQuery, contentType, headers, body, chunked, lengthError, version, pieces }) => {
      const search = rawQuery === "" ? queryText(query) : rawQuery;
      const bare = body.length === 0 || (method === "GET" && lengthError === 0);
      const framing = chunked
        ? ["Transfer-Encoding: chunked"]
        : bare
          ? []
          : [`Content-Length: ${Math.max(0, body.length + lengthError)}`];
      const lines = [
        `${method} ${path}${search} ${version}`,
        "Host: 127.0.0.1",
        "Connection: close",
        ...(route.lines ?? []),
        ...(bare ? [] : [`Content-Type: ${contentType}`]),
        ...framing,
        ...headers.map(([name, value]) => `${name}: ${value}`),
      ];
      return {
        head: lines.join("\r\n"),
        body: (bare ? Buffer.alloc(0) : body).toString("base64"),
        chunked,
        pieces,
        ends: lengthError !== 0,
      };
    });
}

export const anyRequest: fc.Arbitrary<HostileRequest> = fc.oneof(
  ...Object.values<Route>(ROUTES).map((route) => requestTo(route)),
  ...OTHER_DIALECTS.map((route) => requestTo(route)),
  ...[...OTHER_PATHS, PROCESS_ATTACH_PATH].map((path) => requestTo({ method: "GET", path })),
  requestTo({ method: "POST", path: "/internal/ring/{id}" }),
  text.chain((path) => requestTo({ method: "GET", path: `/${encodeURI(wellFormed(path))}` })),
  // No HTTP at all.
  fc.record({
    head: fc.oneof(text, fc.constantFrom("\x16\x03\x01\x02\x00", "PRI * HTTP/2.0", "GET", "A".repeat(100_000))),
    body: fc.base64String({ maxLength: 100 }),
    chunked: fc.constant(false),
    pieces: fc.constantFrom(1, 3),
    ends: fc.constant(true),
  }),
);

function pathOf(template: string): fc.Arbitrary<string> {
  const parameters = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const likely = (name: string): string =>
    name === "process_id" ? "{{process}}" : template.includes("snapshots") ? "{{snapshot}}" : "{{sandbox}}";
  return fc
    .tuple(
      ...parameters.map((name) =>
        fc.oneof(
          { weight: 6, arbitrary: fc.constant(likely(name)) },
          { weight: 1, arbitrary: fc.constant("{{paused}}") },
          {
            weight: 1,
            arbitrary: text.map((value) =>
              encodeURIComponent(wellFormed(value)).replaceAll("%7B", "{").replaceAll("%7D", "}"),
            ),
          },
          { weight: 1, arbitrary: text.map(onOneLine) },
        ),
      ),
    )
    .map((values) =>
      parameters.reduce((path, name, index) => path.replace(`{${name}}`, () => values[index] ?? ""), template),
    );
}

function queryText(query: unknown): string {
  if (typeof query !== "object" || query === null) return "";
  const pairs = Object.entries(query).map(([key, value]) => {
    const said = typeof value === "object" ? JSON.stringify(value) : String(value);
    return `${encodeURIComponent(wellFormed(key))}=${encodeURIComponent(wellFormed(said))}`;
  });
  return pairs.length === 0 ? "" : `?${pairs.join("&").replaceAll("%7B", "{").replaceAll("%7D", "}")}`;
}

/** Half of a surrogate pair has no place in an address; the server gets it by other ways. */
function wellFormed(value: string): string {
  return value.toWellFormed();
}

function onOneLine(value: string): string {
  return value.replaceAll(/[\r\n]/g, " ");
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isJson(body: Route["body"]): body is z.ZodType {
  return body !== undefined && !("stream" in body);
}

function schemaOf(schema: z.ZodType): JsonSchema {
  const { $defs = {}, ...root } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline);
    if (typeof value !== "object" || value === null) return value;
    if ("$ref" in value && typeof value.$ref === "string")
      return inline($defs[value.$ref.replace("#/$defs/", "")] ?? {});
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, inline(child)]));
  };
  return inline(root) as JsonSchema;
}
