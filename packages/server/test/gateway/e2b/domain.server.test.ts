import { execFile } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { withHostInterpreters } from "../../../../../test/kit/server/host-interpreters.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { hasOpenssl, makeCertificate } from "../../../../../test/kit/certificates.ts";
import { FOUND } from "./domain-found.ts";

const run = promisify(execFile);
const KEY = "a-key-of-twenty-characters";
const DOMAIN = "sandboxes.test";
const KEEP_ALIVE_MS = 120_000;
const PROGRAM = fileURLToPath(new URL("domain-program.mjs", import.meta.url));

interface Proxy {
  readonly port: number;
  /** Its certificate, which is its own authority. */
  readonly certificate: string;
  /** Passes requests on to this server, as usual proxies do. */
  readonly passTo: (url: string) => void;
}

/** A proxy with TLS and a wildcard name, in front of a server. */
async function startProxy(): Promise<Proxy> {
  const { cert, key, certFile } = await makeCertificate({ names: [DOMAIN, `*.${DOMAIN}`] });
  let target = new URL("http://127.0.0.1");
  const proxy: Server = createServer({ key, cert }, (incoming, answer) => {
    const { method, url, headers, socket } = incoming;
    const forwarded = { "x-forwarded-for": socket.remoteAddress ?? "", "x-forwarded-proto": "https" };
    const options = { method, path: url, headers: { ...headers, ...forwarded }, agent: false };
    const passed = request(target, options, (inside) => {
      answer.writeHead(inside.statusCode ?? 502, inside.headers);
      inside.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.once("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  // Closing a connection that the client is about to use would fail its request.
  proxy.keepAliveTimeout = KEEP_ALIVE_MS;
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  return { port, certificate: certFile, passTo: (url) => void (target = new URL(url)) };
}

test.skipIf(!hasOpenssl())("E2B_DOMAIN alone is enough behind a proxy with a wildcard name", async () => {
  const proxy = await startProxy();
  const domain = `${DOMAIN}:${proxy.port}`;
  const access = { trustedProxies: ["127.0.0.1"] };
  const server = await startTestServer({
    apiKeys: [KEY],
    previewDomain: `https://${domain}`,
    access,
    wrapBackend: withHostInterpreters,
  });
  proxy.passTo(server.httpUrl);
  const env = {
    PATH: process.env["PATH"],
    E2B_DOMAIN: domain,
    E2B_API_KEY: KEY,
    NODE_EXTRA_CA_CERTS: proxy.certificate,
  };
  const { stdout } = await run(process.execPath, [PROGRAM], { env, timeout: 120_000 });
  const found = JSON.parse(stdout) as { id: string; host: string; url: string };
  expect(found).toMatchObject(FOUND);
  expect(found.host).toBe(`3000-${found.id}.${domain}`);
  expect(new URL(found.url).host).toBe(`49983-${found.id}.${domain}`);
});
