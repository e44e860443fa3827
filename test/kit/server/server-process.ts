import { spawn, type ChildProcess } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { COMMAND } from "./command.ts";
import { listeningUrl } from "./listening-url.ts";
import { RawClient, type RawClientOptions } from "./raw-client.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const DEADLINE_MS = 90_000;

/** Why the tests on the real engine cannot run here; undefined if they can. */
export function whyNoEngine(): string | undefined {
  if (process.env["SANDBOXER_TEST_RUNSC"] === undefined) return "SANDBOXER_TEST_RUNSC names no runsc.";
  return process.getuid?.() === 0 ? undefined : "gVisor needs root.";
}

export interface ServerProcessOptions {
  readonly store?: string;
  /** Servers on one machine share it; a restarted server finds the leftovers of the dead one there. */
  readonly dataHome?: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A program that starts the command: `["unshare", "--pid", …]`. */
  readonly prefix?: readonly string[];
  /** With the default pool of sandboxes that are started ahead. Each costs as much as one that is used. */
  readonly warm?: boolean;
  /** Default: until the end of the test. A server that several tests share needs a `dataHome` too. */
  readonly until?: "stopped";
}

/** `sandboxer serve` as a process of its own, over gVisor unless its flags say otherwise. */
export class ServerProcess {
  readonly url: string;
  readonly dataHome: string;
  readonly #process: ChildProcess;
  readonly #log: string[];
  readonly exited: Promise<{ code: number | null; signal: string | null }>;

  private constructor(url: string, dataHome: string, child: ChildProcess, log: string[]) {
    this.url = url.replace(/^http/, "ws");
    this.dataHome = dataHome;
    this.#process = child;
    this.#log = log;
    this.exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  }

  static async start(options: ServerProcessOptions = {}): Promise<ServerProcess> {
    const dataHome = options.dataHome ?? (await temporaryFolder());
    const runsc = process.env["SANDBOXER_TEST_RUNSC"];
    const platform = process.env["SANDBOXER_TEST_PLATFORM"] ?? "auto";
    const engine = runsc === undefined ? [] : ["--runsc", runsc, "--platform", platform];
    const store = options.store === undefined ? [] : ["--store", options.store];
    const pool = options.warm === true ? [] : ["--warm-pool-max", "0"];
    const serve = ["serve", "--json", "--port", "0", ...engine, ...pool, ...store, ...(options.flags ?? [])];
    const [program = "", ...rest] = [...(options.prefix ?? []), process.execPath, COMMAND, ...serve];
    const child = spawn(program, rest, {
      env: { ...process.env, ...options.env, XDG_DATA_HOME: dataHome },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const log: string[] = [];
    createInterface(child.stderr).on("line", (line) => log.push(line));
    const url = await listeningUrl(child, DEADLINE_MS, () => log.join("\n"));
    const server = new ServerProcess(url, dataHome, child, log);
    if (options.until === undefined) onTestFinished(async () => void (await server.stop()));
    return server;
  }

  get log(): string {
    return this.#log.join("\n");
  }

  /** The pid of the started process. */
  get pid(): number {
    return this.#process.pid ?? 0;
  }

  connect(path: string, options: Pick<RawClientOptions, "ca"> = {}): RawClient {
    return new RawClient(this.url + path, { ...options, deadlineMs: DEADLINE_MS });
  }

  async create(configuration: object = {}): Promise<{ client: RawClient; id: string }> {
    const client = this.connect("/create").send(configuration);
    await client.until("RUNNING");
    return { client, id: (await client.event("sandbox_id")).sandbox_id };
  }

  attach(id: string, query = ""): RawClient {
    return this.connect(`/attach/${id}${query}`);
  }

  /** As in a power failure: without any last message. */
  async killHard(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.exited;
  }

  /** Stops the process from outside, as a stalled machine does. */
  suspend(): void {
    this.#process.kill("SIGSTOP");
  }

  wake(): void {
    this.#process.kill("SIGCONT");
  }

  /** An orderly end; returns the exit code. */
  async stop(): Promise<number | null> {
    this.wake();
    this.#process.kill("SIGTERM");
    return (await this.exited).code;
  }

  /** The run directories of this machine's servers. */
  async runDirectories(): Promise<string[]> {
    const entries = await readdir(join(this.dataHome, "sandboxer", "run"), { withFileTypes: true }).catch(() => []);
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  /** The processes of engines that were started from this machine's run directories. */
  async engineProcesses(): Promise<string[]> {
    const found: string[] = [];
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const command = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).replaceAll("\0", " ");
      if (command.includes(this.dataHome) && command.includes("runsc")) found.push(`${pid} ${command}`);
    }
    return found;
  }
}
