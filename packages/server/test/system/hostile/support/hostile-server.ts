import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { pino } from "pino";
import { HttpClient } from "../../../gateway/http/support.ts";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";

/** How many tries go by before what they have left behind is removed, and the server is looked at closely. */
const ROUND = 80;
const HEALTH_MS = 60_000;
const MAX_ROUNDS = 100;

/** A server of the real parts that is attacked, and some sandboxes to attack. */
export class HostileServer {
  readonly server: TestServer;
  readonly http: HttpClient;
  readonly port: number;
  readonly #errors: string[];
  #ids: Readonly<Record<string, string>> = {};
  #tries = 0;

  private constructor(server: TestServer, errors: string[]) {
    this.server = server;
    this.#errors = errors;
    this.http = new HttpClient(server);
    this.port = Number(new URL(server.httpUrl).port);
  }

  static async start(): Promise<HostileServer> {
    const errors: string[] = [];
    const log = pino({ level: "error" }, { write: (line) => void errors.push(line) });
    const hostile = new HostileServer(await startTestServer({ maxSandboxes: 200, firstMessageMs: 500, log }), errors);
    await hostile.#begin();
    return hostile;
  }

  /** Puts the ids of what exists in the place of their names. */
  fill(input: string): string {
    return input.replaceAll(/\{\{\w+\}\}/g, (name) => this.#ids[name] ?? name);
  }

  tcp(): Socket {
    const socket = connect({ port: this.port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    socket.on("error", () => {});
    return socket;
  }

  /** After each try: no call and no session has ended with an exception, the server answers, and now and then begins with new sandboxes. */
  async lives(): Promise<void> {
    const response = await fetch(`${this.server.httpUrl}/healthz`, { signal: AbortSignal.timeout(HEALTH_MS) });
    assert.equal(response.status, 200);
    assert.deepEqual(this.#errors.splice(0), []);
    await response.arrayBuffer();
    if (++this.#tries % ROUND === 0) await this.#begin();
  }

  /** Nothing that was said has stayed: all can be deleted, and all that ran has ended. */
  async end(): Promise<void> {
    await this.#clear();
    await eventually("nothing runs", () => this.server.backend.runningCount === 0);
    const { client } = await this.server.create();
    await client.run("bash", "echo still here").until("EXECUTION_DONE");
    assert.match(client.output, /still here/);
  }

  async #begin(): Promise<void> {
    await this.#clear();
    const { http } = this;
    const { id, token } = await http.create({ enable_checkpoint: true });
    const paused = await http.create({ enable_checkpoint: true });
    await http.call("POST", `/v1/sandboxes/${paused.id}/checkpoint`, {});
    const snapshot = await http.call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`, {});
    const started = await http.call<{ id: string }>("POST", `/v1/sandboxes/${id}/exec`, {
      command: ["cat"],
      detach: true,
    });
    this.#ids = {
      "{{sandbox}}": id,
      "{{paused}}": paused.id,
      "{{snapshot}}": snapshot.body.id,
      "{{process}}": started.body.id,
      "{{token}}": token,
      "{{envd}}": this.server.e2bToken(id),
      "{{traffic}}": this.server.e2bToken(id, "traffic"),
    };
  }

  /** Calls whose clients have gone may still be making something, so all is looked at until nothing is left. */
  async #clear(): Promise<void> {
    for (let rounds = 0; ; rounds++) {
      const left = [...(await this.#list("sandboxes")), ...(await this.#list("snapshots"))];
      if (left.length === 0) return;
      const refusals = await Promise.all(left.map((path) => this.#remove(path)));
      if (rounds > MAX_ROUNDS) assert.fail(`Something cannot be deleted: ${refusals.join("; ").slice(0, 3_000)}`);
    }
  }

  /** Returns the reason of the refusal. */
  async #remove(path: string): Promise<string> {
    if (path.startsWith("/v1/snapshots")) await this.http.call("PATCH", path, { pinned: false });
    const { status, body } = await this.http.call("DELETE", path);
    return status < 300 ? "" : `${path}: ${JSON.stringify(body)}`;
  }

  async #list(kind: "sandboxes" | "snapshots"): Promise<string[]> {
    const { body } = await this.http.call<{ items: { id: string; state?: string }[] }>("GET", `/v1/${kind}`);
    return body.items.filter(({ state }) => state !== "destroyed").map(({ id }) => `/v1/${kind}/${id}`);
  }
}
