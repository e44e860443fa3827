import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { AccessGate } from "../access/access-gate.ts";
import { wayRefusal } from "../access/browser.ts";
import { sendError } from "../http/error-body.ts";
import { findConsoleFile, type ConsoleFile } from "./console-file.ts";
import { consoleHeaders } from "./security-headers.ts";

export interface ConsoleOptions {
  /** The output of `npm run build:console`. It may be missing. */
  readonly folder: string;
  /** The site that `npm run docs` builds. It may be missing. */
  readonly docsFolder: string;
  readonly gate: AccessGate;
}

/** Paths of the API: a page there would hide a 404. */
const FOR_PROGRAMS = /^\/(v1|internal|healthz|readyz|metrics|openapi\.json)(\/|$)/;
/** The documentation, which is a site of its own. */
const DOCS = /^\/docs(?=\/|$)/;
/** Files whose names change with their content. */
const HASHED = /^\/assets\//;
const NONCE_PLACEHOLDER = "__CSP_NONCE__";

/**
 * Serves the console: files for browsers, at every address that nothing else uses. They contain no secrets and need no
 * key; the page's requests do. Undefined: the request is not for the console.
 */
export function consoleServer(
  options: ConsoleOptions,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> | undefined {
  return (request, reply) => {
    if (request.method !== "GET" && request.method !== "HEAD") return undefined;
    const path = request.url.split(/[?#]/, 1)[0] ?? "/";
    if (FOR_PROGRAMS.test(path)) return undefined;
    return answer(options, path, request, reply);
  };
}

async function answer(
  { folder, docsFolder, gate }: ConsoleOptions,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  void reply.headers(consoleHeaders());
  const refusal = wayRefusal(gate.requestOf(request.raw), gate.authenticator, { visits: true });
  if (refusal !== undefined) return sendError(refusal, reply);
  if (DOCS.test(path)) return sendDocs(docsFolder, path.replace(DOCS, ""), request, reply);
  const isPage = path === "/" || path === "/index.html";
  const file = isPage ? undefined : await findConsoleFile(folder, path, request.headers["accept-encoding"]);
  if (file !== undefined) return sendFile(file, HASHED.test(path), request, reply);
  // Addresses inside the console are handled by the page: a reload there starts with the page.
  const wantsPage = isPage || (!HASHED.test(path) && request.headers.accept?.includes("text/html") === true);
  if (wantsPage) return sendPage(folder, reply);
  return sendError(new SandboxerError("not_found", `There is nothing at ${path.slice(0, 200)}.`), reply);
}

function sendFile(file: ConsoleFile, hashed: boolean, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { encoding, etag, contentType, sizeBytes } = file;
  void reply.headers({
    "cache-control": hashed ? "public, max-age=31536000, immutable" : "no-cache",
    vary: "accept-encoding",
    etag,
    ...(encoding === undefined ? {} : { "content-encoding": encoding }),
  });
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (reply.statusCode === 200 && (known?.includes(etag) === true || known?.includes("*") === true))
    return reply.code(304).send();
  void reply.type(contentType).header("content-length", sizeBytes);
  return request.method === "HEAD" ? reply.send() : reply.send(file.open());
}

/** The page has a fresh nonce in every response, so it must not be cached: the nonce would not match the header. */
async function sendPage(folder: string, reply: FastifyReply): Promise<FastifyReply> {
  void reply.header("cache-control", "no-store");
  let page: string;
  try {
    page = await readFile(join(folder, "index.html"), "utf8");
  } catch {
    return reply.code(404).type("text/plain; charset=utf-8").send(NOT_BUILT);
  }
  const nonce = randomBytes(18).toString("base64");
  return reply
    .headers(consoleHeaders(nonce))
    .type("text/html; charset=utf-8")
    .send(page.replaceAll(NONCE_PLACEHOLDER, nonce));
}

/** A page of the site is a file with the ending `.html`, which its address does not have. */
async function sendDocs(
  folder: string,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if (path === "") return reply.redirect("/docs/", 308);
  const find = async (name: string): Promise<ConsoleFile | undefined> =>
    await findConsoleFile(folder, name, request.headers["accept-encoding"]);
  const found = (await find(path)) ?? (await find(path.endsWith("/") ? `${path}index.html` : `${path}.html`));
  if (found !== undefined) return sendFile(found, HASHED.test(path), request, reply);
  const missing = await find("/404.html");
  if (missing !== undefined) return sendFile(missing, false, request, reply.code(404));
  return reply.code(404).type("text/plain; charset=utf-8").send(DOCS_NOT_BUILT);
}

const DOCS_NOT_BUILT = `The documentation is not built. Run this where sandboxer is, and load this page again:

    npm run docs

The same pages are Markdown files in the folder docs; begin with docs/README.md.
`;

const NOT_BUILT = `The console is not built. Run this where sandboxer is, and load this page again:

    npm run build:console

Programs need no console: the HTTP interface is under /v1, described by /openapi.json.
`;
