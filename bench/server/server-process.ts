import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY } from "../arguments.ts";
import type { CleanUp } from "../clean-up.ts";
import { ServerLog } from "./server-log.ts";

export interface ServerOptions {
  /** The address of its store. */
  readonly store: string;
  /** For its data; the cache is the user's. */
  readonly dataHome: string;
  readonly flags?: readonly string[];
  /** For Node itself. */
  readonly nodeFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface ServerProcess {
  readonly pid: number;
  /** `ws://127.0.0.1:PORT` */
  readonly url: string;
  readonly log: ServerLog;
  /** The address of its store. */
  readonly store: string;
  readonly runDirectory: string;
  readonly residentMiB: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

export interface EngineFacts {
  readonly version: string;
  readonly platform: string;
  readonly path: string;
  /** `messages` or `commands`; absent in results of earlier versions. */
  readonly control?: string;
}

/** Starts the real command. */
export async function startServer(options: ServerOptions, cleanUp: CleanUp): Promise<ServerProcess> {
  const profile = process.env["BENCH_CPU_PROFILE"];
  const child = spawn(
    process.execPath,
    [
      ...(profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`]),
      ...(options.nodeFlags ?? []),
      join(REPOSITORY, "packages/cli/bin/sandboxer.mjs"),
      "serve",
      "--json",
      "--port=0",
      `--store=${options.store}`,
      "--idle-timeout=1h",
      // The store's growth is measured, so garbage collection must not run meanwhile.
      "--collect-every=off",
      "--scrub-every=off",
      ...(options.flags ?? []),
    ],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...options.env, XDG_DATA_HOME: options.dataHome } },
  );
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = cleanUp.add(async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
    await exited;
    clearTimeout(timer);
  });
  const log = new ServerLog(createInterface({ input: child.stderr }));
  const url = await firstLine(createInterface({ input: child.stdout }), exited, log);
  return {
    pid: child.pid ?? 0,
    url: url.replace(/^http/, "ws"),
    log,
    store: options.store,
    runDirectory: join(options.dataHome, "sandboxer", "run"),
    residentMiB: () => residentMiB(child.pid ?? 0),
    stop,
  };
}

/** From the log: `gVisor (runsc VERSION, PLATFORM, driven by CONTROL), PATH`. */
export async function engineOf({ log }: ServerProcess): Promise<EngineFacts> {
  const text = String((await log.first((record) => record["msg"] === "listening"))["engine"]);
  const [, version, platform, control, path] = /^gVisor \(runsc (.+), (\w+), driven by (\w+)\), (.+)$/.exec(text) ?? [];
  if (version === undefined || platform === undefined || control === undefined || path === undefined)
    throw new Error(`Not gVisor: ${text}`);
  return { version, platform, path, control };
}

async function firstLine(
  lines: ReturnType<typeof createInterface>,
  exited: Promise<void>,
  log: ServerLog,
): Promise<string> {
  const line = new Promise<string>((resolve) => lines.once("line", resolve));
  const failed = exited.then(() => {
    throw new Error(`The server did not start:\n${log.tail()}`);
  });
  failed.catch(() => {});
  const text = await Promise.race([line, failed]);
  const { url } = JSON.parse(text) as { url?: string };
  if (url === undefined) throw new Error(`The server did not start: ${text}\n${log.tail()}`);
  return url;
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}
