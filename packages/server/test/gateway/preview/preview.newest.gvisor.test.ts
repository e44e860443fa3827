import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { call, get, open } from "./support.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of previews on gVisor are skipped: ${missing}`);

/**
 * Counts its requests in memory; /events answers with one event and stays open; a WebSocket sends its messages back;
 * POST answers with the body's size.
 */
const PROGRAM = `
import base64, hashlib, http.server
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global count
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

async function start(store: string): Promise<{ readonly httpUrl: string; readonly process: ServerProcess }> {
  const process = await ServerProcess.start({ store, flags: ["--lease-ttl", "2s"] });
  return { httpUrl: process.url.replace(/^ws/, "http"), process };
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
    const [first, second] = [await start(store), await start(store)];
    const { id } = (await call(first, "POST", "/v1/sandboxes", {})) as { id: string };
    const path = `/v1/sandboxes/${id}`;
    await call(first, "POST", `${path}/exec`, { command: ["python3", "-c", PROGRAM], detach: true });
    const listed = async (): Promise<Ports> => (await call(first, "GET", `${path}/ports`)) as Ports;
    await eventually("it listens", async () => (await listed()).items.length > 0, 30_000);
    const [port] = (await listed()).items;
    expect(port).toMatchObject({ port: 8000, address: "0.0.0.0" });
    const host = `8000-${id}.localhost`;
    expect(port?.url).toBe(`http://${host}:${new URL(first.httpUrl).port}/`);

    expect(await get({ server: first, host })).toMatchObject({ status: 200, text: "1" });
    expect((await get({ server: second, host })).text).toBe("2");
    const body = "x".repeat(3_000_000);
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

    // Its server dies: the same URL resumes the last checkpoint at the other one, when the lease is over.
    await second.process.killHard();
    expect(await get({ server: first, host })).toMatchObject({ status: 200, text: "4" });
    expect(await call(first, "GET", path)).toMatchObject({ state: "running", owner: { here: true } });
  });
});
