import type { CreatedSandboxRecord, SnapshotDiff, SnapshotInfo } from "@sandboxer/protocol";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { SandboxClient, text } from "./processes/support.ts";
import { type Answer, type ErrorAnswer, HttpClient } from "./support.ts";

/** Counts in memory: one more for each line of its stdin. */
export const COUNTER = "x=0; while read line; do x=$((x+1)); echo count $x; done";

/** Snapshots over HTTP, as any client speaks it. */
export class SnapshotClient<Server extends { readonly httpUrl: string }> {
  readonly http: HttpClient;
  readonly server: Server;

  constructor(server: Server) {
    this.http = new HttpClient(server);
    this.server = server;
  }

  async take(sandboxId: string, body: object = {}): Promise<SnapshotInfo> {
    return expectStatus(201, await this.call<SnapshotInfo>("POST", `/v1/sandboxes/${sandboxId}/snapshot`, body));
  }

  async restore(idOrName: string, body: object = {}): Promise<CreatedSandboxRecord> {
    return expectStatus(201, await this.call<CreatedSandboxRecord>("POST", `/v1/snapshots/${idOrName}/restore`, body));
  }

  async get(idOrName: string, query = ""): Promise<SnapshotInfo> {
    return expectStatus(200, await this.call<SnapshotInfo>("GET", `/v1/snapshots/${idOrName}${query}`));
  }

  async list(query = ""): Promise<{ items: SnapshotInfo[]; next_cursor: string | null }> {
    return expectStatus(200, await this.call("GET", `/v1/snapshots${query}`));
  }

  async diff(from: string, to: string): Promise<SnapshotDiff> {
    return expectStatus(200, await this.call<SnapshotDiff>("GET", `/v1/snapshots/${from}/diff?to=${to}`));
  }

  async remove(idOrName: string): Promise<void> {
    expectStatus(204, await this.call("DELETE", `/v1/snapshots/${idOrName}`));
  }

  /** The status and the code of a call that is refused. */
  async refused(method: string, path: string, body?: object): Promise<[number, string]> {
    const answer = await this.call(method, path, body);
    return [answer.status, answer.body?.error?.code];
  }

  call<Body = ErrorAnswer>(method: string, path: string, body?: object, headers = {}): Promise<Answer<Body>> {
    return this.http.call<Body>(method, path, body, { headers });
  }

  sandbox(id: string): SandboxClient {
    return new SandboxClient(this.server, id);
  }
}

/** Lets a counter count once more, and returns its number. */
export async function count(sandbox: SandboxClient, processId: string): Promise<number> {
  const { output_end: offset } = await sandbox.process(processId);
  await sandbox.stdin(processId, "more\n");
  let found: string | undefined;
  await eventually("the counter has counted", async () => {
    const printed = text(await sandbox.output(processId, `?offset=${offset}`));
    found = /count (\d+)\n/.exec(printed)?.[1];
    return found !== undefined;
  });
  return Number(found);
}

export async function startCounter(sandbox: SandboxClient): Promise<string> {
  return (await sandbox.spawn({ shell: COUNTER })).id;
}

function expectStatus<Body>(status: number, answer: Answer<Body>): Body {
  if (answer.status === status) return answer.body;
  throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
}
