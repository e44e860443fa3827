import { spawn, type ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { CLONE_COMMAND, COMMAND } from "../../../../../../test/kit/server/command.ts";
import { listeningUrl } from "../../../../../../test/kit/server/listening-url.ts";
import { RawClient } from "../../../../../../test/kit/server/raw-client.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import type { StepName } from "./steps.ts";

const SIGNAL_AT_STEP = new URL("./signal-at-step.ts", import.meta.url).href;
const DEADLINE_MS = 60_000;

export interface CrashServerOptions {
  readonly store: string;
  /** The process kills itself there. */
  readonly dieAt?: StepName;
  /** The process stops itself there, until it is continued. */
  readonly stopAt?: StepName;
  /** Default: `fake`. gVisor's flags come from the environment of the suite, Docker's from `flags`. */
  readonly backend?: "fake" | "gvisor" | "docker";
  readonly flags?: readonly string[];
  readonly leaseTtl?: string;
  /** Servers on one machine share it. */
  readonly dataDirectory?: string;
  /** Default: the end of the test. A server that several tests share needs a `dataDirectory` too. */
  readonly until?: "stopped";
}

/** `sandboxer serve` as a process of its own, which can be set to die or stop at a step. */
export class CrashServer {
  readonly url: string;
  readonly dataDirectory: string;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  readonly #process: ChildProcess;
  readonly #log: readonly string[];

  private constructor(url: string, dataDirectory: string, child: ChildProcess, log: readonly string[]) {
    this.url = url.replace(/^http/, "ws");
    this.dataDirectory = dataDirectory;
    this.#process = child;
    this.#log = log;
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
  }

  static async start(options: CrashServerOptions): Promise<CrashServer> {
    const { store, dieAt, stopAt, backend = "fake", leaseTtl = "1s" } = options;
    const step = dieAt ?? stopAt;
    const orders = { SANDBOXER_TEST_STEP: step, SANDBOXER_TEST_SIGNAL: stopAt === undefined ? "SIGKILL" : "SIGSTOP" };
    const dataDirectory = options.dataDirectory ?? (await temporaryFolder());
    const engine = backend === "gvisor" ? gvisorFlags() : (options.flags ?? []);
    const flags = ["--port", "0", "--store", store, "--data-directory", dataDirectory, "--lease-ttl", leaseTtl];
    const command = step === undefined ? [COMMAND] : ["--import", SIGNAL_AT_STEP, CLONE_COMMAND];
    const child = spawn(process.execPath, [...command, "serve", "--json", "--backend", backend, ...flags, ...engine], {
      env: { ...process.env, ...orders },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const log: string[] = [];
    createInterface(child.stderr).on("line", (line) => log.push(line));
    const url = await listeningUrl(child, DEADLINE_MS, () => log.join("\n"));
    const server = new CrashServer(url, dataDirectory, child, log);
    // Real engines outlive a server that is killed; what is fake does not, and may be stopped at its step once more.
    if (options.until === undefined) {
      onTestFinished(async () => void (backend === "fake" ? server.kill("SIGKILL") : await server.stop()));
    }
    return server;
  }

  get log(): string {
    return this.#log.join("\n");
  }

  connect(path: string): RawClient {
    return new RawClient(this.url + path, { deadlineMs: DEADLINE_MS });
  }

  async create(configuration: object): Promise<{ client: RawClient; id: string }> {
    const client = this.connect("/create").send(configuration);
    await client.until("RUNNING");
    return { client, id: (await client.event("sandbox_id")).sandbox_id };
  }

  attach(sandboxId: string): RawClient {
    return this.connect(`/attach/${sandboxId}`);
  }

  /**
   * Asks for a sandbox until the process dies of it. On a busy machine a server with a short lease may refuse, or the
   * store may answer too late for the process to notice its step.
   */
  async attachUntilDead(sandboxId: string): Promise<{ code: number | null; signal: string | null }> {
    for (;;) {
      const client = this.attach(sandboxId);
      const exit = await Promise.race([this.exited, client.outcome().then(() => undefined)]);
      if (exit !== undefined) return exit;
      if (client.closeCode === undefined) await client.send({ action: "checkpoint" }).untilClosed();
    }
  }

  kill(signal: "SIGTERM" | "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    this.#process.kill(signal);
  }

  /** Whether the kernel holds it still. */
  async isStopped(): Promise<boolean> {
    // The program's name is in parentheses and may hold anything; the state comes after it.
    const stat = await readFile(`/proc/${this.#process.pid}/stat`, "utf8");
    return stat.split(") ").at(-1)?.startsWith("T") === true;
  }

  /** An orderly end; gives the exit code. */
  async stop(): Promise<number | null> {
    this.kill("SIGCONT");
    this.kill("SIGTERM");
    return (await this.exited).code;
  }
}

function gvisorFlags(): string[] {
  const { SANDBOXER_TEST_RUNSC: runsc = "", SANDBOXER_TEST_PLATFORM: platform = "auto" } = process.env;
  return ["--runsc", runsc, "--platform", platform, "--warm-pool-max", "0"];
}
