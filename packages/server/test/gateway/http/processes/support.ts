import type { ExecLine, ExecResult, ProcessRecord } from "@sandboxer/protocol";
import type { TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { type Answer, type ErrorAnswer, HttpClient } from "../support.ts";

/** One sandbox over HTTP, as any client speaks it. */
export class SandboxClient {
  readonly http: HttpClient;
  readonly url: string;
  readonly id: string;

  constructor(server: Pick<TestServer, "httpUrl">, id: string) {
    this.http = new HttpClient(server);
    this.url = `${server.httpUrl}/v1/sandboxes/${id}`;
    this.id = id;
  }

  static async create(server: Pick<TestServer, "httpUrl">, body: object = {}): Promise<SandboxClient> {
    return new SandboxClient(server, (await new HttpClient(server).create(body)).id);
  }

  call<Body = ErrorAnswer>(method: string, path: string, body?: unknown, headers = {}): Promise<Answer<Body>> {
    return this.http.call<Body>(method, `/v1/sandboxes/${this.id}${path}`, body, { headers });
  }

  async exec(body: object, headers: Record<string, string> = {}): Promise<ExecResult> {
    const answer = await this.call<ExecResult>("POST", "/exec", body, headers);
    if (answer.status !== 200) throw new Error(`exec: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Answers with the process at once. */
  async spawn(body: object, headers: Record<string, string> = {}): Promise<ProcessRecord> {
    const answer = await this.call<ProcessRecord>("POST", "/exec", { wait: false, ...body }, headers);
    if (answer.status !== 200) throw new Error(`exec: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async process(processId: string): Promise<ProcessRecord> {
    return (await this.call<ProcessRecord>("GET", `/processes/${processId}`)).body;
  }

  async processes(): Promise<ProcessRecord[]> {
    return (await this.call<{ items: ProcessRecord[] }>("GET", "/processes")).body.items;
  }

  /** The buffered output, or with `follow` everything to the end. */
  async output(processId: string, query = ""): Promise<ExecLine[]> {
    return Array.fromAsync(lines(await fetch(`${this.url}/processes/${processId}/output${query}`)));
  }

  async stdin(processId: string, data: string, query = ""): Promise<number> {
    const headers = { "content-type": "application/octet-stream" };
    return (await fetch(`${this.url}/processes/${processId}/stdin${query}`, { method: "POST", headers, body: data }))
      .status;
  }

  stream(body: object, options: { signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
    return fetch(`${this.url}/exec`, {
      method: "POST",
      headers: { accept: "application/x-ndjson", "content-type": "application/json", ...options.headers },
      body: JSON.stringify(body),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  }
}

export async function* lines(response: Response): AsyncGenerator<ExecLine> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    const parts = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) yield JSON.parse(line) as ExecLine;
  }
  if (rest !== "") throw new Error(`A line without an end: ${rest}`);
}

/** Output of both kinds, joined. */
export function text(all: readonly ExecLine[]): string {
  return all.map((line) => (line.event === "stdout" || line.event === "stderr" ? line.data : "")).join("");
}

export const ticking = "i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.01; done";
