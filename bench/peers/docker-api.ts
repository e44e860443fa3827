import type { Readable } from "node:stream";
import { parseEngineAddress } from "../../packages/server/src/backends/docker/engine/address.ts";
import { attachmentOf } from "../../packages/server/src/backends/docker/engine/attachment.ts";
import { EngineHttp, type EngineCall } from "../../packages/server/src/backends/docker/engine/engine-http.ts";

const API = "/v1.45";

/** The measurements' calls to a Docker engine, over one kept connection. */
export class DockerApi {
  readonly #http: EngineHttp;
  readonly #runtime: string;

  constructor(address: string, runtime: string) {
    this.#http = new EngineHttp(parseEngineAddress(address));
    this.#runtime = runtime;
  }

  close(): void {
    this.#http.close();
  }

  async create(image: string, command: readonly string[]): Promise<string> {
    const json = {
      Image: image,
      Entrypoint: command,
      AttachStdout: true,
      HostConfig: {
        Runtime: this.#runtime,
        NetworkMode: "none",
        Binds: ["/usr:/usr:ro"],
        LogConfig: { Type: "none" },
        // CRIU cannot save what it cannot see, and the default filter hides some of it.
        SecurityOpt: ["seccomp=unconfined"],
      },
    };
    const call = { what: "make a container", method: "POST", path: `${API}/containers/create`, json } as const;
    return this.#made(call);
  }

  /** The output of its first process. */
  async attach(id: string): Promise<Readable> {
    const path = `${API}/containers/${id}/attach`;
    const query = { stream: 1, stdout: 1, stderr: 1 };
    return attachmentOf(await this.#http.hijack({ what: "attach", method: "POST", path, query })).output;
  }

  async start(id: string, checkpoint?: string): Promise<void> {
    await this.#post(`/containers/${id}/start`, { checkpoint });
  }

  /** Runs a program in it to its end. */
  async exec(id: string, command: readonly string[]): Promise<void> {
    const json = { AttachStdout: true, AttachStderr: true, Cmd: command };
    const call = { what: "prepare an exec", method: "POST", path: `${API}/containers/${id}/exec`, json } as const;
    const exec = await this.#made(call);
    const path = `${API}/exec/${exec}/start`;
    await this.#http.text({ what: "exec", method: "POST", path, json: { Detach: false, Tty: false } });
    const state = await this.#http.text({ what: "look", method: "GET", path: `${API}/exec/${exec}/json` });
    const { ExitCode: code } = JSON.parse(state) as { ExitCode: number | null };
    if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}`);
  }

  async commit(id: string, repo: string): Promise<void> {
    await this.#post("/commit", { container: id, repo, tag: "bench" }, {});
  }

  /** The container keeps running: with some runtimes it cannot be ended by the checkpoint. */
  async checkpoint(id: string, name: string): Promise<void> {
    await this.#post(`/containers/${id}/checkpoints`, {}, { CheckpointID: name, Exit: false });
  }

  async kill(id: string): Promise<void> {
    await this.#post(`/containers/${id}/stop`, { t: "0", signal: "SIGKILL" });
  }

  async removeContainer(id: string): Promise<void> {
    await this.#delete(`/containers/${id}`, { force: true, v: true });
  }

  async removeImage(name: string): Promise<void> {
    await this.#delete(`/images/${name}`, { force: true });
  }

  async #made(call: EngineCall): Promise<string> {
    return (JSON.parse(await this.#http.text(call)) as { Id: string }).Id;
  }

  async #post(path: string, query: Record<string, string | undefined>, json?: object): Promise<void> {
    await this.#http.status({ what: path, method: "POST", path: `${API}${path}`, query, json, timeoutMs: 300_000 });
  }

  async #delete(path: string, query: Record<string, boolean>): Promise<void> {
    await this.#http.status({ what: path, method: "DELETE", path: `${API}${path}`, query });
  }
}
