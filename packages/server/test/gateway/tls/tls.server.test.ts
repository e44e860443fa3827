import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type Certificate, hasOpenssl, makeCertificate } from "../../../../../test/kit/certificates.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { INSTANCE, PEER_HEADER, PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { requestOtherServer } from "../../../src/gateway/relay/other-server-request.ts";
import type { Credentials } from "../../../src/gateway/tls/secure-server.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { openPeerSecret } from "../../../src/store/peer-secret.ts";
import { PORT, serveInside } from "../preview/support.ts";

interface SecureTestServer {
  readonly server: TestServer;
  readonly certificate: Certificate;
  /** A connection over HTTP/2. */
  readonly session: ClientHttp2Session;
  readonly renew: (credentials: Credentials) => void;
}

async function startSecure(options: TestServerOptions = {}): Promise<SecureTestServer> {
  const certificate = await makeCertificate();
  const listeners: ((renewed: Credentials) => void)[] = [];
  const tls = {
    credentials: certificate,
    onRenewed: (listener: (renewed: Credentials) => void) => listeners.push(listener),
  };
  const server = await startTestServer({ ...options, tls });
  const session = sessionTo(server, certificate);
  return { server, certificate, session, renew: (renewed) => listeners.forEach((listener) => listener(renewed)) };
}

function sessionTo(server: TestServer, { cert }: Certificate): ClientHttp2Session {
  const session = connect(server.httpUrl, { ca: cert });
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

async function ask(
  session: ClientHttp2Session,
  path: string,
  { method = "GET", body, headers = {} }: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const stream = session.request({ ":path": path, ":method": method, ...headers }, { endStream: body === undefined });
  // Without a length, as a client sends a body that it does not know yet.
  if (body !== undefined) stream.end(body);
  const [answered] = (await once(stream, "response")) as [Record<string, unknown>];
  return { status: Number(answered[":status"]), headers: answered, text: await text(stream) };
}

const json = { "content-type": "application/json" };

async function createOver(session: ClientHttp2Session, body: object = {}): Promise<string> {
  const created = await ask(session, "/v1/sandboxes", { method: "POST", body: JSON.stringify(body), headers: json });
  expect(created.status).toBe(201);
  return (JSON.parse(created.text) as { id: string }).id;
}

describe.skipIf(!hasOpenssl())("a server with a certificate", () => {
  test("twenty open requests and one more share a connection over HTTP/2", async () => {
    const { session, server } = await startSecure();
    const open = Array.from({ length: 20 }, () =>
      session.request({ ":path": "/v1/events?follow=true", accept: "text/event-stream" }),
    );
    for (const stream of open)
      expect(((await once(stream, "response")) as [Record<string, unknown>])[0][":status"]).toBe(200);
    await createOver(session);
    expect(server.sockets.size).toBe(1);
    for (const stream of open) stream.close();
  });

  test("a program receives its input and returns its output, over HTTP/2 and HTTP/1.1", async () => {
    const { session, server, certificate } = await startSecure();
    const id = await createOver(session);
    const body = JSON.stringify({ command: ["cat"], stdin: "over TLS" });
    const path = `/v1/sandboxes/${id}/exec`;
    const second = await ask(session, path, { method: "POST", body, headers: json });
    expect(JSON.parse(second.text)).toMatchObject({ stdout: "over TLS" });
    const sent = request(server.httpUrl + path, { method: "POST", headers: json, ca: certificate.cert }).end(body);
    const [first] = (await once(sent, "response")) as [NodeJS.ReadableStream & { httpVersion: string }];
    expect([first.httpVersion, JSON.parse(await text(first))]).toMatchObject(["1.1", { stdout: "over TLS" }]);
  });

  test("a client without HTTP/2 uses a WebSocket", async () => {
    const { server, certificate } = await startSecure();
    const { client } = await server.create({}, { ca: certificate.cert });
    client.send({ language: "bash", code: "echo over a WebSocket" });
    expect(await client.until("EXECUTION_DONE")).toContain("out:over a WebSocket\n");
  });

  test("a page of another origin is refused by the authority of its request", async () => {
    const { session, server } = await startSecure();
    const host = new URL(server.httpUrl).host;
    const own = await ask(session, "/v1/sandboxes", { headers: { origin: `https://${host}` } });
    const foreign = await ask(session, "/v1/sandboxes", { headers: { origin: "https://elsewhere.test" } });
    const renamed = await ask(session, "/v1/sandboxes", { headers: { ":authority": "elsewhere.test", host } });
    expect([own.status, foreign.status, renamed.status]).toEqual([200, 403, 403]);
  });

  test("a preview answers over HTTP/2, and its program sees HTTPS", async () => {
    const { session, server, certificate } = await startSecure();
    const inside = serveInside(server.backend, (incoming, answer) => {
      answer.setHeader("x-seen", JSON.stringify(incoming.headers));
      answer.writeHead(200, "As it likes", ["vary", "a", "vary", "b", "set-cookie", "c=1", "set-cookie", "d=2"]);
      incoming.pipe(answer);
    });
    const id = await createOver(session);
    const listen = `require("net").createServer().listen(${PORT}, "127.0.0.1")`;
    const exec = JSON.stringify({ command: ["node", "-e", listen], detach: true });
    await ask(session, `/v1/sandboxes/${id}/exec`, { method: "POST", body: exec, headers: json });
    const live = await server.live(id);
    await eventually("it listens", async () => (await live.handle.listeningPorts?.())?.length === 1);
    const authority = `${PORT}-${id}.localhost:${new URL(server.httpUrl).port}`;
    const sent = { method: "POST", body: "there and back", headers: { ":authority": authority } };
    const got = await ask(session, "/path", sent);
    expect(got).toMatchObject({ status: 200, text: "there and back" });
    expect(got.headers).toMatchObject({ vary: "a, b", "set-cookie": ["c=1", "d=2"] });
    const seen = JSON.parse(String(got.headers["x-seen"])) as Record<string, string>;
    expect(seen).toMatchObject({ host: authority, "x-forwarded-proto": "https" });
    expect(Object.keys(seen).filter((name) => name.startsWith(":"))).toEqual([]);

    new WebSocketServer({ server: inside }).on("connection", (socket) => socket.send("hello"));
    const socket = new WebSocket(`${server.url}/`, { ca: certificate.cert, headers: { host: authority } });
    const [heard] = (await once(socket, "message")) as [Buffer];
    expect(heard.toString()).toBe("hello");
    socket.terminate();
  });

  test("the tools of MCP call the server that they belong to", async () => {
    const { session } = await startSecure();
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "sandbox_open", arguments: {} } };
    const headers = { ...json, accept: "application/json, text/event-stream" };
    const answer = await ask(session, "/mcp", { method: "POST", body: JSON.stringify(call), headers });
    expect(answer.text).toContain("sandbox_id");
  });

  test("a body that stalls is cut, and the other requests of its connection continue", async () => {
    const { session } = await startSecure({ bodyTimeoutMs: 300 });
    const stream = session.request({ ":path": "/v1/sandboxes", ":method": "POST", ...json }, { endStream: false });
    stream.write("{");
    const [answered] = (await once(stream, "response")) as [Record<string, unknown>];
    expect([answered[":status"], JSON.parse(await text(stream))]).toMatchObject([503, { error: { code: "timeout" } }]);
    expect((await ask(session, "/healthz")).status).toBe(200);
  });

  test("a body that stalls is cut, however much another request of its connection sends", async () => {
    const { session } = await startSecure({ bodyTimeoutMs: 500 });
    const id = await createOver(session);
    const upload = session.request({
      ":path": `/v1/sandboxes/${id}/files?path=/tmp/big`,
      ":method": "PUT",
      "content-type": "application/octet-stream",
    });
    const sending = setInterval(() => upload.write(Buffer.alloc(50_000)), 50);
    onTestFinished(() => clearInterval(sending));
    const stalled = session.request({ ":path": "/v1/sandboxes", ":method": "POST", ...json }, { endStream: false });
    stalled.write("{");
    const [answered] = (await once(stalled, "response")) as [Record<string, unknown>];
    expect([answered[":status"], await text(stalled)]).toMatchObject([503, expect.stringContaining("too slowly")]);
    clearInterval(sending);
    upload.end();
    const [uploaded] = (await once(upload, "response")) as [Record<string, unknown>];
    expect(uploaded[":status"]).toBe(204);
  });

  test("a server without a certificate of the authorities is no peer, though it has the store's secret", async () => {
    const [first, second, strange] = await Promise.all([makeCertificate(), makeCertificate(), makeCertificate()]);
    const store = await temporaryFolder();
    const clientCa = first.cert + second.cert;
    const start = (own: Certificate): Promise<TestServer> =>
      startTestServer({
        store,
        tls: { credentials: { ...own, clientCa }, onRenewed: () => {} },
        peerTls: () => ({ ca: clientCa, cert: own.cert, key: own.key }),
      });
    const asked = await start(first);
    const secret = new PeerSecret(await openPeerSecret(await openStore(store)));
    const statusFor = async (shown: Partial<Certificate>): Promise<number | undefined> => {
      const headers = { [PEER_HEADER]: secret.proofOf(INSTANCE) };
      const server = { instanceId: "", url: asked.httpUrl, tls: { ca: clientCa, cert: shown.cert, key: shown.key } };
      const sent = requestOtherServer(server, { method: "GET", path: "/internal/instance", headers });
      sent.request.end();
      const { statusCode } = (await sent.answer()).resume();
      return statusCode;
    };
    expect([await statusFor(second), await statusFor(strange), await statusFor({})]).toEqual([200, 403, 403]);
    // A client needs no certificate, and another server passes its call on to the owner.
    const id = await createOver(sessionTo(asked, first));
    const peer = sessionTo(await start(second), second);
    expect((await ask(peer, `/v1/sandboxes/${id}/processes`)).status).toBe(200);
  });

  test("new connections get a renewed certificate, and open ones stay", async () => {
    const { session, server, renew } = await startSecure();
    expect((await ask(session, "/healthz")).status).toBe(200);
    const renewed = await makeCertificate();
    renew(renewed);
    const socket = connectTls({ port: Number(new URL(server.httpUrl).port), host: "127.0.0.1", ca: renewed.cert });
    await once(socket, "secureConnect");
    expect(socket.authorized).toBe(true);
    socket.destroy();
    expect((await ask(session, "/healthz")).status).toBe(200);
  });

  test("a server that stops ends connections that are open", async () => {
    const { session, server } = await startSecure();
    const stream = session.request({ ":path": "/v1/events?follow=true", accept: "text/event-stream" });
    stream.on("error", () => {});
    await once(stream, "response");
    const closed = once(session, "close");
    await server.drain();
    await closed;
    expect(session.destroyed).toBe(true);
  });
});
