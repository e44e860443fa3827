import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { listeningUrl } from "../../../../../../test/kit/server/listening-url.ts";
import {
  CONTROL_FILE,
  exitFileOf,
  pidFileOf,
  stallFileOf,
  UNDISTURBED,
  writeControl,
  type Control,
} from "../hooks/control.ts";
import type { Watchdog } from "./watchdog.ts";

const ROOT = fileURLToPath(new URL("../../../../../..", import.meta.url));
const COMMAND = join(ROOT, "packages/cli/bin/sandboxer.mjs");
const HOOKS = new URL("../hooks/server-hooks.ts", import.meta.url).href;
const START_LIMIT_MS = 180_000;
const LOOK_MS = 20;

export interface SlotOptions {
  readonly index: number;
  readonly folder: string;
  readonly flags: readonly string[];
  /** `npm`: below npm and a shell, as a person or a supervisor starts it. */
  readonly launcher: "node" | "npm";
  readonly watchdog: Watchdog;
}

/** Where one server after the other runs: the same port, data directory and log for each. */
export class ServerSlot {
  readonly index: number;
  readonly logFile: string;
  readonly #options: SlotOptions;
  readonly #controlFile: string;
  #control: Control = UNDISTURBED;
  #child: ChildProcess | undefined;
  #port = 0;
  /** Nobody has asked the current server to end. */
  #mayEnd = true;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.index = options.index;
    mkdirSync(options.folder, { recursive: true });
    this.logFile = join(options.folder, "log");
    this.#controlFile = join(options.folder, "control");
    this.control({});
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get isStarted(): boolean {
    return this.#child !== undefined;
  }

  /** The pid of the server itself, not of its launcher; undefined if there is none. */
  get #pid(): number | undefined {
    if (this.#child === undefined || !existsSync(pidFileOf(this.#controlFile))) return undefined;
    const pid = Number(readFileSync(pidFileOf(this.#controlFile), "utf8"));
    return isAlive(pid) ? pid : undefined;
  }

  /** It ended by itself. */
  get hasCrashed(): boolean {
    return this.#child !== undefined && !this.#mayEnd && this.#pid === undefined;
  }

  control(change: Partial<Control>): void {
    this.#control = { ...this.#control, ...change };
    writeControl(this.#controlFile, this.#control);
  }

  async start(): Promise<void> {
    const { folder, flags, launcher, watchdog } = this.#options;
    for (const file of [pidFileOf(this.#controlFile), exitFileOf(this.#controlFile)]) rmSync(file, { force: true });
    const data = ["--data-directory", join(folder, "data"), "--port", String(this.#port)];
    const serve = ["serve", "--json", ...data, ...flags];
    const [program, parameters] =
      launcher === "node"
        ? [process.execPath, [COMMAND, ...serve]]
        : ["npm", ["exec", "--no", "--", "@sandboxer/cli", ...serve]];
    const log = openSync(this.logFile, "a");
    const child = spawn(program, parameters, {
      cwd: ROOT,
      detached: true,
      stdio: ["ignore", "pipe", log],
      env: {
        ...process.env,
        PATH: `${join(ROOT, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`,
        NODE_OPTIONS: `--import=${HOOKS}`,
        [CONTROL_FILE]: this.#controlFile,
      },
    });
    closeSync(log);
    if (child.pid !== undefined) watchdog.killsGroup(child.pid);
    this.#mayEnd = true;
    this.#child = child;
    try {
      this.#port = Number(new URL(await listeningUrl(child, START_LIMIT_MS, () => this.logTail())).port);
      this.#mayEnd = false;
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /** To the server alone, or to all that was started with it. */
  signal(signal: "SIGTERM" | "SIGSTOP" | "SIGCONT" | "SIGKILL", to: "server" | "group"): void {
    if (signal === "SIGTERM" || signal === "SIGKILL") this.#mayEnd = true;
    const pid = to === "server" ? this.#pid : this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(to === "server" ? pid : -pid, signal);
    } catch {
      // It has ended.
    }
  }

  /** Kills what is there of the server and of what started it. */
  async kill(): Promise<void> {
    this.signal("SIGKILL", "group");
    await this.ended();
  }

  /** Waits for the end of the server. Gives its exit code; undefined if a signal killed it, or it is late. */
  async ended(limitMs = Infinity): Promise<number | undefined> {
    const endMs = performance.now() + limitMs;
    while (this.#pid !== undefined) {
      if (performance.now() > endMs) return undefined;
      await delay(LOOK_MS);
    }
    const exitFile = exitFileOf(this.#controlFile);
    // Its launcher has nothing more to do.
    this.signal("SIGKILL", "group");
    this.#child = undefined;
    return existsSync(exitFile) ? Number(readFileSync(exitFile, "utf8")) : undefined;
  }

  /** When the servers here did not get to run, on the machine's monotonic clock. */
  stalls(): readonly { readonly fromMs: number; readonly untilMs: number }[] {
    const file = stallFileOf(this.#controlFile);
    if (!existsSync(file)) return [];
    return readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => {
        const [fromMs = 0, untilMs = 0] = line.split(" ").map(Number);
        return { fromMs, untilMs };
      });
  }

  logTail(lines = 20): string {
    return existsSync(this.logFile)
      ? readFileSync(this.logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n")
      : "";
  }
}

/** A zombie has ended; the process that should have reaped it may have ended before. */
function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.split(") ").at(-1)?.startsWith("Z") !== true;
  } catch {
    return false;
  }
}
