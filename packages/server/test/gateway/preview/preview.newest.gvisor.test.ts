import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { call, get, open } from "./support.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of previews on gVisor are skipped: ${missing}`);

const MEGABYTE = 1024 * 1024;
const LARGE_BYTES = 64 * MEGABYTE;
/** Paused sandboxes that are asked at once. By hand with 100. */
const PAUSED = Number(process.env["SANDBOXER_PAUSED_PREVIEWS"] ?? 8);

/**
 * Counts its requests in memory; /events answers with one event and stays open; /large sends 64 MiB, and /sent says how
 * much of it; a WebSocket sends its messages back; POST answers with the body's size.
 */
const PROGRAM = `
import base64, hashlib, http.server
count = 0
sent = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global count, sent
        if self.headers["Upgrade"] == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            while True:
                head = self.rfile.read(2)
                if len(head) < 2 or head[0] != 0x81: return
                mask = self.rfile.read(4)
                data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(head[1] & 127)))
                self.wfile.write(bytes([0x81, len(data)]) + data)
        if self.path == "/sent": return self.answer(str(sent))
        if self.path == "/large":
            self.send_response(200)
            self.send_header("Content-Length", str(${LARGE_BYTES}))
            self.end_headers()
            while sent < ${LARGE_BYTES}: sent += self.wfile.write(bytes(65536))
            return
        count += 1
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"data: one\\n\\n")
            self.rfile.read(1)
            return
        self.answer(str(count))
    def do_POST(self):
        self.answer(str(len(self.rfile.read(int(self.headers["Content-Length"])))))
    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
`;

interface Ports {
  readonly items: readonly { readonly port: number; readonly url: string }[];
}

interface Started {
  readonly httpUrl: string;
  readonly process: ServerProcess;
}

async function start(store: string, ...flags: string[]): Promise<Started> {
  const process = await ServerProcess.start({ store, flags });
  return { httpUrl: process.url.replace(/^ws/, "http"), process };
}

/** A sandbox in which the program listens: its id, and its port as it is listed. */
async function listening(server: Started): Promise<{ readonly id: string; readonly port: Ports["items"][number] }> {
  const { id } = (await call(server, "POST", "/v1/sandboxes", {})) as { id: string };
  await call(server, "POST", `/v1/sandboxes/${id}/exec`, { command: ["python3", "-c", PROGRAM], detach: true });
  const listed = async (): Promise<Ports> => (await call(server, "GET", `/v1/sandboxes/${id}/ports`)) as Ports;
  await eventually("it listens", async () => (await listed()).items.length > 0, 30_000);
  const [port] = (await listed()).items;
  return { id, port: port as Ports["items"][number] };
}

async function echoed(httpUrl: string, host: string, text: string): Promise<string> {
  const { port } = new URL(httpUrl);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host: `${host}:${port}` } });
  const heard = Promise.withResolvers<unknown>();
  socket
    .once("open", () => socket.send(text))
    .once("message", heard.resolve)
    .once("error", heard.reject);
  const answer = String(await heard.promise);
  socket.terminate();
  return answer;
}

describe.skipIf(missing !== undefined)("previews on gVisor", () => {
  test("a web server inside is opened, paused and resumed at other servers, where it keeps running", async () => {
    const store = await temporaryFolder();
    const lease = ["--lease-ttl", "2s"];
    const [first, second] = [await start(store, ...lease), await start(store, ...lease)];
    const { id, port } = await listening(first);
    const path = `/v1/sandboxes/${id}`;
    expect(port).toMatchObject({ port: 8000, address: "0.0.0.0" });
    const host = `8000-${id}.localhost`;
    expect(port.url).toBe(`http://${host}:${new URL(first.httpUrl).port}/`);

    expect(await get({ server: first, host })).toMatchObject({ status: 200, text: "1" });
    expect((await get({ server: second, host })).text).toBe("2");
    const body = "x".repeat(16 * MEGABYTE);
    expect((await get({ server: second, host }, { method: "POST", body })).text).toBe(String(body.length));
    const events = await open({ server: second, host }, { path: "/events" });
    expect(String((await events[Symbol.asyncIterator]().next()).value)).toBe("data: one\n\n");
    for (const server of [first, second])
      expect(await echoed(server.httpUrl, host, "over a socket")).toBe("over a socket");

    await call(first, "POST", `${path}/checkpoint`, {});
    const [woken] = await Promise.all([get({ server: second, host }), get({ server: second, host })]);
    expect(woken.status).toBe(200);
    expect(await echoed(second.httpUrl, host, "after a resume")).toBe("after a resume");
    expect(await call(second, "GET", path)).toMatchObject({ state: "running", owner: { here: true } });

    // Its server dies: the same URL resumes the last checkpoint on the other one, when the lease has expired.
    await second.process.killHard();
    expect(await get({ server: first, host })).toMatchObject({ status: 200, text: "4" });
    expect(await call(first, "GET", path)).toMatchObject({ state: "running", owner: { here: true } });
  });

  test("a client that does not read makes the program wait, also at another server", async () => {
    const store = await temporaryFolder();
    const [first, second] = [await start(store), await start(store)];
    const { id } = await listening(first);
    const host = `8000-${id}.localhost`;
    const answer = await open({ server: second, host }, { path: "/large" });
    const sent = async (): Promise<number> => Number((await get({ server: first, host }, { path: "/sent" })).text);
    let before = -1;
    await eventually("the program waits", async () => {
      const now = await sent();
      const waits = now === before && now > 0;
      before = now;
      await meanwhile(200);
      return waits;
    });
    expect(before).toBeLessThan(LARGE_BYTES / 2);
    let bytes = 0;
    for await (const chunk of answer) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(LARGE_BYTES);
  });

  test("paused sandboxes with concurrent requests are all resumed, a few at a time", async () => {
    const server = await start(await temporaryFolder(), "--max-wakes", "2");
    const { id } = await listening(server);
    const ids = [id];
    while (ids.length < PAUSED) {
      const count = Math.min(PAUSED - ids.length, 10);
      const forked = await call(server, "POST", `/v1/sandboxes/${id}/fork`, { count });
      ids.push(...(forked as { items: { id: string }[] }).items.map((each) => each.id));
    }
    for (const each of ids) await call(server, "POST", `/v1/sandboxes/${each}/checkpoint`, {});
    // Two for each: they share its resume, and both get an answer of its own program.
    const asked = await Promise.all([...ids, ...ids].map((each) => get({ server, host: `8000-${each}.localhost` })));
    expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 200));
    const counted = ids.map((_, index) => [asked[index]?.text, asked[index + ids.length]?.text].toSorted());
    expect(counted).toEqual(ids.map(() => ["1", "2"]));
  });
});
