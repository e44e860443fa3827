import { describe, expect, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../test/kit/temporary-folder.ts";
import { get } from "../../server/test/gateway/preview/support.ts";
import { sandboxerProvider, type SandboxerSession } from "../src/index.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of the AI SDK's sessions on gVisor is skipped: ${missing}`);

const PORT = 8000;
/** Answers each request with its number, which is only in memory. */
const COUNTER = `
import http.server, itertools
numbers = itertools.count(1)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(next(numbers)).encode())
http.server.HTTPServer(("127.0.0.1", ${PORT}), Handler).serve_forever()
`;

async function visit(session: SandboxerSession): Promise<string> {
  const { url } = await session.getPortEndpoint({ port: PORT });
  const { hostname: host, port } = new URL(url);
  const answer = await get({ server: { httpUrl: `http://127.0.0.1:${port}` }, host });
  return answer.status === 200 ? answer.text : String(answer.status);
}

describe.skipIf(missing !== undefined)("a session of the AI SDK on gVisor", () => {
  test("keeps its programs, their memory and ports when it is stopped, and resumes on another server", async () => {
    const store = await temporaryFolder();
    const [first, second] = [await ServerProcess.start({ store }), await ServerProcess.start({ store })];
    const providerAt = ({ url }: ServerProcess) =>
      sandboxerProvider({ url: url.replace(/^ws/, "http"), ports: [PORT] });
    const session = await providerAt(first).createSession({ sessionId: "conversation" });
    await session.writeTextFile({ path: "counter.py", content: COUNTER });
    await session.spawn({ command: "exec python3 counter.py" });
    await expect.poll(() => visit(session)).toBe("1");
    expect(await visit(session)).toBe("2");
    await session.stop();
    const resumed = await providerAt(second).resumeSession({ sessionId: "conversation" });
    expect(resumed.id).toBe(session.id);
    expect(await visit(resumed)).toBe("3");
    expect(await resumed.run({ command: "ls counter.py" })).toMatchObject({ stdout: "counter.py\n" });
    await resumed.destroy();
  });
});
