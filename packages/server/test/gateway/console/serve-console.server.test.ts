import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

function builtConsole(): string {
  const base = mkdtempSync(join(tmpdir(), "console-"));
  onTestFinished(() => rmSync(base, { recursive: true }));
  const folder = join(base, "dist");
  mkdirSync(join(folder, "assets"), { recursive: true });
  writeFileSync(join(base, "secret.txt"), "outside");
  writeFileSync(join(folder, "index.html"), `<meta name="csp-nonce" content="__CSP_NONCE__"><title>page</title>`);
  writeFileSync(join(folder, "icon.svg"), "<svg/>");
  writeFileSync(join(folder, "unknown.kind"), "?");
  writeFileSync(join(folder, ".hidden.txt"), "hidden");
  writeFileSync(join(folder, "assets", "main-a1b2.js"), "export {};");
  writeFileSync(join(folder, "assets", "main-a1b2.js.gz"), gzipSync("export {};"));
  writeFileSync(join(folder, "assets", "empty-0.css"), "");
  symlinkSync(join(base, "secret.txt"), join(folder, "link.txt"));
  return folder;
}

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  return startTestServer({ store: null, consoleFolder: builtConsole(), ...options });
}

interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Unchanged: fetch would normalize the path and decompress the answer. */
function raw(
  { httpUrl }: TestServer,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
  const request = httpRequest(httpUrl, { path, headers, method }, (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
    );
  });
  request.on("error", reject);
  request.end();
  return promise;
}

const HTML = { accept: "text/html,*/*" };

test("the page has a fresh nonce in its policy and its text, and is never kept", async () => {
  const server = await start();
  const [first, second] = [await raw(server, "/"), await raw(server, "/")];
  const nonces = [first, second].map(({ headers, body }) => {
    const [, nonce = ""] = /style-src 'self' 'nonce-([^']+)'/.exec(String(headers["content-security-policy"])) ?? [];
    expect(body.toString()).toBe(`<meta name="csp-nonce" content="${nonce}"><title>page</title>`);
    return nonce;
  });
  expect(nonces[0]).not.toBe(nonces[1]);
  expect(nonces[0]).toMatch(/^[A-Za-z0-9+/]{24}$/);
  expect(first.headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
  });
  expect(first.headers["etag"]).toBeUndefined();
});

test("URLs inside the console return the page, those of the API do not", async () => {
  const server = await start();
  for (const path of ["/sandboxes/abc", "/sandboxes/a%2Fb?tab=files", "/v1x"]) {
    expect((await raw(server, path, HTML)).body.toString()).toContain("<title>page");
  }
  for (const path of ["/v1/nothing", "/internal/x", "/openapi.json/x", "/metrics/x", "/assets/gone.js"]) {
    const { status, body } = await raw(server, path, HTML);
    expect([status, JSON.parse(body.toString())]).toMatchObject([404, { error: { code: "not_found" } }]);
  }
  expect((await raw(server, "/sandboxes/abc", { accept: "*/*" })).status).toBe(404);
  expect((await raw(server, "/", HTML, "POST")).status).toBe(404);
});

test("files have their type, a tag that answers 304, and hashed ones are cached forever", async () => {
  const server = await start();
  const icon = await raw(server, "/icon.svg");
  expect(icon.headers).toMatchObject({ "content-type": "image/svg+xml", "cache-control": "no-cache" });
  expect(icon.headers["content-security-policy"]).toBe(POLICY);
  const etag = String(icon.headers["etag"]);
  const again = await raw(server, "/icon.svg", { "if-none-match": `"x", W/${etag}` });
  expect([again.status, again.body.length]).toEqual([304, 0]);
  const script = await raw(server, "/assets/main-a1b2.js");
  expect(script.headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "cache-control": "public, max-age=31536000, immutable",
  });
  expect(script.body.toString()).toBe("export {};");
  expect((await raw(server, "/assets/empty-0.css")).body.length).toBe(0);
});

test("files that the build compressed are sent to clients that can read them", async () => {
  const server = await start();
  const path = "/assets/main-a1b2.js";
  const packed = await raw(server, path, { "accept-encoding": "br, gzip" });
  expect(packed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
  expect(packed.body).toEqual(gzipSync("export {};"));
  const refused = await raw(server, path, { "accept-encoding": "gzip;q=0" });
  expect(refused.headers["content-encoding"]).toBeUndefined();
  expect(refused.headers["etag"]).not.toBe(packed.headers["etag"]);
});

test("HEAD has the headers of GET and no body", async () => {
  const server = await start();
  for (const path of ["/", "/assets/main-a1b2.js"]) {
    const [head, get] = [await raw(server, path, {}, "HEAD"), await raw(server, path)];
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
    expect(head.headers["content-type"]).toBe(get.headers["content-type"]);
  }
});

test("nothing outside of the folder, hidden, linked or of an unknown kind is served", async () => {
  const server = await start();
  const paths = [
    "/../secret.txt",
    "/assets/../../secret.txt",
    "/..%2fsecret.txt",
    "/%2e%2e/secret.txt",
    "/..\\secret.txt",
    "//secret.txt",
    "/link.txt",
    "/.hidden.txt",
    "/unknown.kind",
    "/assets",
    "/assets/",
    "/icon.svg%00.txt",
  ];
  for (const path of paths) {
    const { status, body } = await raw(server, path);
    expect([400, 404]).toContain(status);
    expect(body.toString()).not.toMatch(/outside|^hidden|^\?/);
  }
});

test("/docs serves the built documentation with the same policy, and nothing outside of its folder", async () => {
  const docsFolder = builtConsole();
  mkdirSync(join(docsFolder, "guides"));
  writeFileSync(join(docsFolder, "guides", "limits.html"), "<title>Limits</title>");
  writeFileSync(join(docsFolder, "404.html"), "<title>Not found</title>");
  writeFileSync(join(docsFolder, "assets", "@search.a1b2.js"), "search");
  const server = await start({ docsFolder });
  const home = await raw(server, "/docs");
  expect([home.status, home.headers["location"]]).toEqual([308, "/docs/"]);
  const page = await raw(server, "/docs/guides/limits");
  expect([page.status, page.body.toString()]).toEqual([200, "<title>Limits</title>"]);
  expect(page.headers).toMatchObject({ "content-type": "text/html; charset=utf-8", "cache-control": "no-cache" });
  expect(page.headers["content-security-policy"]).toBe(POLICY);
  expect((await raw(server, "/docs/")).body.toString()).toContain("<title>page");
  const asset = await raw(server, "/docs/assets/@search.a1b2.js");
  expect(asset.headers["cache-control"]).toContain("immutable");
  for (const path of [
    "/docs/../secret.txt",
    "/docs/%2e%2e/secret.txt",
    "/docs/..%2fsecret",
    "/docs/link.txt",
    "/docs/.hidden",
  ]) {
    const { status, body } = await raw(server, path, HTML);
    expect([path, status, body.toString()]).toEqual([path, 404, "<title>Not found</title>"]);
  }
  expect((await raw(server, "/docs/missing", { "if-none-match": "*" })).status).toBe(404);
  expect((await raw(server, "/docs/", { host: "rebound.example" })).status).toBe(403);
});

test("documentation that is not built shows the command to run", async () => {
  const { status, headers, body } = await raw(await start(), "/docs/guides/limits", HTML);
  expect([status, headers["content-type"]]).toEqual([404, "text/plain; charset=utf-8"]);
  expect(body.toString()).toContain("npm run docs");
});

test("an open server answers to loopback names alone, one with keys to all, without a key", async () => {
  const open = await start();
  const evil = { host: "rebound.example" };
  expect((await raw(open, "/", evil)).status).toBe(403);
  expect((await raw(open, "/assets/main-a1b2.js", evil)).status).toBe(403);
  const keyed = await start({ apiKeys: ["a-key"] });
  expect((await raw(keyed, "/", evil)).status).toBe(200);
});

test("a console that is not built shows the command to run; one that is turned off is not served", async () => {
  const { status, headers, body } = await raw(await start({ consoleFolder: "/nonexistent" }), "/");
  expect([status, headers["content-type"]]).toEqual([404, "text/plain; charset=utf-8"]);
  expect(body.toString()).toContain("npm run build:console");
  const off = await raw(await startTestServer({ store: null }), "/", HTML);
  expect(JSON.parse(off.body.toString())).toMatchObject({ error: { code: "not_found" } });
});

test.each(["here", "through another server"])(
  "bytes of a sandbox are never rendered by a browser, %s",
  async (where) => {
    const server = await startTestServer();
    const { id } = await server.create({ enable_checkpoint: true });
    const asked = where === "here" ? server : await startTestServer({ store: server.storeFolder ?? null });
    const url = `${asked.httpUrl}/v1/sandboxes/${id}`;
    const relay = { "sandboxer-relay": "allow" };
    const path = encodeURIComponent(`/tmp/"';\r\nset-cookie: a=b ü.html`);
    await fetch(`${url}/files?path=${path}`, {
      method: "PUT",
      headers: { "content-type": "application/octet-stream", ...relay },
      body: "<script>alert(1)</script>",
    });
    for (const address of [`${url}/files?path=${path}`, `${url}/tree?path=/tmp`]) {
      const { status, headers } = await fetch(address, { headers: relay });
      expect(status).toBe(200);
      expect(headers.get("content-security-policy")).toContain("sandbox");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-disposition")).toMatch(/^attachment; filename\*=UTF-8''[A-Za-z0-9%._~-]+$/);
      expect(headers.get("set-cookie")).toBeNull();
    }
    expect((await fetch(`${url}/process-table`, { headers: relay })).headers.get("x-content-type-options")).toBe(
      "nosniff",
    );
  },
);
