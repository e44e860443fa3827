import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { request, Agent } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import { type Certificate, hasOpenssl, makeCertificate } from "../kit/certificates.ts";
import { eventually } from "../kit/eventually.ts";
import { startTestServer, type TestServer } from "../kit/server/test-server.ts";
import { deployPrograms, whyNoDeployPrograms } from "../kit/services/deploy-programs.ts";
import { startService, untilReady } from "../kit/services/service-process.ts";
import { temporaryFolder } from "../kit/temporary-folder.ts";

const SAMPLES = join(import.meta.dirname, "../../deploy/proxies");
const API = "sandboxes.example.com";
const PREVIEW = "preview.example.com";
const INSIDE_PORT = 8000;

interface Proxied {
  readonly server: TestServer;
  readonly port: number;
  readonly certificate: Certificate;
}

/** The sample with another port and another certificate; everything else is unchanged. */
async function sample(name: string, { server, port, certificate }: Proxied): Promise<string> {
  const given = await readFile(join(SAMPLES, name), "utf8");
  const changed = given
    .replaceAll("127.0.0.1:8080", new URL(server.httpUrl).host)
    .replaceAll("/etc/sandboxer/tls/certificate.pem", certificate.certFile)
    .replaceAll("/etc/sandboxer/tls/key.pem", certificate.keyFile);
  return name === "Caddyfile"
    ? `{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port ${port}\n}\n${changed}`
    : changed.replace("listen 443", `listen 127.0.0.1:${port}`);
}

async function argvOf(name: string, folder: string, config: string): Promise<string[]> {
  if (name === "Caddyfile") {
    await writeFile(join(folder, name), config);
    return [deployPrograms.caddy, "run", "--adapter", "caddyfile", "--config", join(folder, name)];
  }
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${join(folder, each)};`,
  );
  const whole = [
    "daemon off;",
    "user root;",
    `pid ${join(folder, "pid")};`,
    "events {}",
    "http {",
    "access_log off;",
    ...paths,
    config,
    "}",
  ];
  await writeFile(join(folder, name), whole.join("\n"));
  await mkdir(join(folder, "logs"));
  return [deployPrograms.nginx, "-p", folder, "-c", join(folder, name), "-e", "stderr"];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function start(name: string): Promise<Proxied> {
  const port = await freePort();
  const certificate = await makeCertificate({ names: [API, `*.${PREVIEW}`] });
  const access = { trustedProxies: ["127.0.0.1"] };
  const server = await startTestServer({ previewDomain: `https://${PREVIEW}:${port}`, apiKeys: [KEY], access });
  const proxied = { server, port, certificate };
  const folder = await temporaryFolder();
  const argv = await argvOf(name, folder, await sample(name, proxied));
  const env = { PATH: "/usr/bin:/bin", HOME: folder, LD_LIBRARY_PATH: await deployPrograms.libraries() };
  const service = startService(argv, { env, cleanUp: "" });
  onTestFinished(async () => await service.stop());
  const answers = (): Promise<boolean> =>
    ask(proxied, API, "/healthz").then(
      ({ status }) => status === 200,
      () => false,
    );
  await untilReady(service, answers, name);
  return proxied;
}

const KEY = "a-key-of-twenty-characters";
const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };

async function ask(
  { port, certificate }: Proxied,
  host: string,
  path: string,
  { method = "GET", body, more = {} }: { method?: string; body?: string; more?: Record<string, string> } = {},
): Promise<{ status: number; text: string }> {
  const agent = new Agent({ keepAlive: false });
  const sent = request({
    host: "127.0.0.1",
    port,
    path,
    method,
    servername: host,
    ca: certificate.cert,
    agent,
    headers: { ...headers, ...more, host: `${host}:${port}` },
  });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [NodeJS.ReadableStream & { statusCode: number }];
  return { status: answer.statusCode, text: await text(answer) };
}

const missing = hasOpenssl() ? whyNoDeployPrograms() : "There is no openssl.";
if (missing !== undefined) console.warn(`The tests of deploy/proxies are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("the samples of proxies", () => {
  test.each(["Caddyfile", "nginx.conf"])("%s passes the API, WebSockets and previews on", async (name) => {
    const proxied = await start(name);
    const { server, port, certificate } = proxied;
    // A page of the proxy's own origin may use the API.
    const more = { origin: `https://${API}:${port}` };
    const created = await ask(proxied, API, "/v1/sandboxes", { method: "POST", body: "{}", more });
    expect(created.status).toBe(201);
    const { id, url } = JSON.parse(created.text) as { id: string; url?: string };
    expect(url ?? "").not.toContain("http://");

    const listen = `require("net").createServer().listen(${INSIDE_PORT}, "127.0.0.1")`;
    const exec = JSON.stringify({ command: ["node", "-e", listen], detach: true });
    await ask(proxied, API, `/v1/sandboxes/${id}/exec`, { method: "POST", body: exec });
    server.backend.services.set(INSIDE_PORT, (connection) =>
      connection.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
    );
    const live = await server.live(id);
    await eventually("it listens", async () => (await live.handle.listeningPorts?.())?.length === 1);
    const preview = `${INSIDE_PORT}-${id}.${PREVIEW}`;
    expect(await ask(proxied, preview, "/")).toEqual({ status: 200, text: "hello" });

    const options: ClientOptions & { readonly servername: string } = {
      headers: { ...headers, host: `${API}:${port}` },
      ca: certificate.cert,
      servername: API,
    };
    const socket = new WebSocket(`wss://127.0.0.1:${port}/create`, options);
    await once(socket, "open");
    socket.send("{}");
    const [first] = (await once(socket, "message")) as [Buffer];
    expect(JSON.parse(first.toString())).toMatchObject({ event: "status_update" });
    socket.terminate();
  });
});
