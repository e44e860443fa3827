import { request } from "node:http";
import { type Lab, byEffort } from "../lab.ts";
import type { Contest, Findings } from "../result.ts";
import { measurePair, timed } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { summarize } from "../statistics.ts";

const PORT = 8000;
const SERVE = `
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", ${PORT}), Handler).serve_forever()
`;
/** The same request as a preview's, from a program in the sandbox: a new connection each time. Prints milliseconds. */
const ASK_INSIDE = `
import http.client, time, sys
for _ in range(int(sys.argv[1])):
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", ${PORT})
    connection.request("GET", "/")
    connection.getresponse().read()
    connection.close()
    print((time.perf_counter() - begin) * 1000)
`;

/** The goals, in ms: for a warm request, and beyond a resume. */
const WARM_MS = 5;
const WAKE_MS = 50;

/** A request to a web server in a sandbox that runs, and in one that is paused. */
export async function measurePreview(lab: Lab): Promise<Partial<Findings>> {
  const { server } = lab;
  const id = await createSandbox(server);
  await callServer(server, "POST", `/v1/sandboxes/${id}/exec`, { command: ["python3", "-c", SERVE], detach: true });
  const ask = (): Promise<void> => get(server.url, `${PORT}-${id}.localhost`);
  while (
    !(await ask()
      .then(() => true)
      .catch(() => false))
  );
  lab.progress("Preview requests");
  const contests = [await warm(lab, id, ask), await wake(lab, id, ask)];
  await destroySandbox(server, id);
  return { contests };
}

async function warm(lab: Lab, id: string, ask: () => Promise<void>): Promise<Contest> {
  const rounds = byEffort(lab, { full: 200, quick: 50, smoke: 2 });
  for (let round = 0; round < 5; round += 1) await ask();
  const ours: number[] = [];
  for (let round = 0; round < rounds; round += 1) ours.push(await timed(ask));
  const inside = await execIn(lab.server, id, ["python3", "-c", ASK_INSIDE, String(rounds)]);
  const allowed = inside
    .trim()
    .split("\n")
    .map((text) => Number(text) + WARM_MS);
  return {
    id: "preview-warm",
    title: "Preview request, the sandbox runs",
    unit: "ms",
    sides: [
      { name: "preview", what: "GET at the port's host, a new connection each time", summary: summarize(ours) },
      {
        name: `inside + ${WARM_MS} ms`,
        what: `the same GET by a program in the sandbox, plus ${WARM_MS} ms`,
        summary: summarize(allowed),
      },
    ],
    aim: { bound: "at most", ratio: 1 },
  };
}

async function wake(lab: Lab, id: string, ask: () => Promise<void>): Promise<Contest> {
  const pause = (): Promise<unknown> => callServer(lab.server, "POST", `/v1/sandboxes/${id}/checkpoint`, {});
  const pair = await measurePair(
    byEffort(lab, { full: 15, quick: 5, smoke: 1 }),
    async () => {
      await pause();
      return await timed(ask);
    },
    async () => {
      await pause();
      const resume = async (): Promise<unknown> => callServer(lab.server, "POST", `/v1/sandboxes/${id}/resume`);
      return (await timed(resume)) + WAKE_MS;
    },
  );
  return {
    id: "preview-wake",
    title: "Preview request, the sandbox is paused",
    unit: "ms",
    sides: [
      { name: "preview", what: "GET at the port's host until the answer of the program", summary: pair.ours },
      { name: `resume + ${WAKE_MS} ms`, what: `POST …/resume alone, plus ${WAKE_MS} ms`, summary: pair.raw },
    ],
    aim: { bound: "at most", ratio: 1 },
  };
}

/** Node's fetch does not allow another Host. */
async function get(url: string, host: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const answered = Promise.withResolvers<void>();
  const sent = request({ hostname, port, headers: { host: `${host}:${port}` }, agent: false }, (answer) => {
    answer.resume().once("error", answered.reject);
    answer.once("end", () =>
      answer.statusCode === 200 ? answered.resolve() : answered.reject(new Error(`${answer.statusCode}`)),
    );
  });
  sent.once("error", answered.reject).end();
  await answered.promise;
}
