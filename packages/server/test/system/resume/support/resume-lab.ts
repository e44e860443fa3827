import { execFile } from "node:child_process";
import type { EventRecord, SandboxRecord } from "@sandboxer/protocol";
import { HttpClient } from "../../../gateway/http/support.ts";
import { COMMAND } from "../../../../../../test/kit/server/command.ts";
import { ServerProcess } from "../../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";

const KEY = "my-convo";

export interface LabOptions {
  /** The flags of every server. */
  readonly flags: readonly string[];
  /** The flags of every `sandboxer run`. */
  readonly runFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Ran {
  readonly code: number;
  readonly out: string;
}

/** One installation with a store: servers that are processes of their own, and the command, each call a process too. */
export class ResumeLab {
  readonly store: string;
  readonly dataHome: string;
  readonly #options: LabOptions;

  private constructor(options: LabOptions, store: string, dataHome: string) {
    this.#options = options;
    this.store = store;
    this.dataHome = dataHome;
  }

  static async open(options: LabOptions): Promise<ResumeLab> {
    return new ResumeLab(options, await temporaryFolder(), await temporaryFolder());
  }

  async start(...flags: readonly string[]): Promise<ResumeServer> {
    const { store, dataHome } = this;
    const { env = {}, runFlags = [] } = this.#options;
    const process = await ServerProcess.start({
      store,
      dataHome,
      env,
      flags: [...this.#options.flags, "--lease-ttl", "2s", ...flags],
    });
    return new ResumeServer(process, runFlags);
  }
}

export class ResumeServer {
  readonly process: ServerProcess;
  readonly http: HttpClient;
  readonly #url: string;
  readonly #runFlags: readonly string[];

  constructor(process: ServerProcess, runFlags: readonly string[]) {
    this.process = process;
    this.#url = process.url.replace(/^ws/, "http");
    this.http = new HttpClient({ httpUrl: this.#url });
    this.#runFlags = runFlags;
  }

  /** `sandboxer run --key my-convo -- sh -c SCRIPT`. */
  async run(script: string, ...flags: readonly string[]): Promise<string> {
    const { code, out } = await this.command(
      "run",
      "--key",
      KEY,
      ...this.#runFlags,
      ...flags,
      "--",
      "sh",
      "-c",
      script,
    );
    if (code !== 0) throw new Error(`It ended with ${code}: ${out}\n${this.process.log}`);
    return out;
  }

  command(...args: readonly string[]): Promise<Ran> {
    const { promise, resolve } = Promise.withResolvers<Ran>();
    const env = { ...process.env, SANDBOXER_URL: this.#url };
    const child = execFile(process.execPath, [COMMAND, ...args], { env, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out: error === null ? stdout : stdout + stderr });
    });
    child.stdin?.end();
    return promise;
  }

  /** How each acquisition went on this server, as its events tell. */
  async tiers(): Promise<string[]> {
    return (await this.events("sandbox.acquired")).map(({ data }) => (data as { tier: string }).tier);
  }

  async events(type: string): Promise<EventRecord[]> {
    return (await this.http.call<{ items: EventRecord[] }>("GET", `/v1/events?type=${type}`)).body.items;
  }

  async take(id: string): Promise<void> {
    const { status, body } = await this.http.call<object>("POST", `/v1/sandboxes/${id}/snapshot`);
    if (status !== 201) throw new Error(JSON.stringify(body));
  }

  async destroy(id: string): Promise<void> {
    const { status, body } = await this.http.call<object>("DELETE", `/v1/sandboxes/${id}`);
    if (status !== 200) throw new Error(JSON.stringify(body));
  }

  /** The sandboxes with the key, the newest first. */
  async sandboxes(): Promise<SandboxRecord[]> {
    return (await this.http.call<{ items: SandboxRecord[] }>("GET", `/v1/sandboxes?key=${KEY}`)).body.items;
  }

  async only(): Promise<SandboxRecord> {
    const [found, ...others] = await this.sandboxes();
    if (found === undefined || others.length > 0) throw new Error(`There are ${others.length + 1} or none.`);
    return found;
  }

  stop(): Promise<number | null> {
    return this.process.stop();
  }

  kill(): Promise<void> {
    return this.process.killHard();
  }
}
