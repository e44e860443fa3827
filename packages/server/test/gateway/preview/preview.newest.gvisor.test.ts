import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { call, get, open } from "./support.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of previews on gVisor are skipped: ${missing}`);

/** Counts its requests in memory; /events answers with one event and stays open; POST answers with the body's size. */
const PROGRAM = `
import http.server
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global count
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

    await call(first, "POST", `${path}/checkpoint`, {});
    const [woken] = await Promise.all([get({ server: second, host }), get({ server: second, host })]);
    expect(woken.status).toBe(200);
    expect(await call(second, "GET", path)).toMatchObject({ state: "running", owner: { here: true } });

    // Its server dies: the same URL resumes the last checkpoint at the other one, when the lease is over.
    await second.process.killHard();
    expect(await get({ server: first, host })).toMatchObject({ status: 200, text: "4" });
    expect(await call(first, "GET", path)).toMatchObject({ state: "running", owner: { here: true } });
  });
});
