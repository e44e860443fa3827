import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY } from "../arguments.ts";
import type { CleanUp } from "../clean-up.ts";
import { ServerLog } from "./server-log.ts";

export interface ServerProcess {
  readonly pid: number;
  /** `ws://127.0.0.1:PORT` */
  readonly url: string;
  readonly log: ServerLog;
  /** `gVisor (runsc VERSION, PLATFORM), PATH` */
  readonly engine: EngineFacts;
  readonly runDirectory: string;
  readonly residentMiB: () => Promise<number>;
}

export interface EngineFacts {
  readonly version: string;
  readonly platform: string;
  readonly path: string;
}

/** Starts the real command, with a store and a data directory of its own; the cache is the user's. */
export async function startServer(
  scratch: string,
  runscPath: string | undefined,
  cleanUp: CleanUp,
): Promise<ServerProcess> {
  const dataHome = join(scratch, "data");
  const profile = process.env["BENCH_CPU_PROFILE"];
  const child = spawn(
    process.execPath,
    [
      ...(profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`]),
      join(REPOSITORY, "packages/cli/bin/sandboxer.mjs"),
      "serve",
      "--json",
      "--port=0",
      `--store=${join(scratch, "store")}`,
      "--idle-timeout=1h",
      ...(runscPath === undefined ? [] : [`--runsc=${runscPath}`]),
    ],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, XDG_DATA_HOME: dataHome } },
  );
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  cleanUp.add(async () => {
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
    engine: parseEngine(String((await log.first((record) => record["msg"] === "listening"))["engine"])),
    runDirectory: join(dataHome, "sandboxer", "run"),
    residentMiB: () => residentMiB(child.pid ?? 0),
  };
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

function parseEngine(text: string): EngineFacts {
  const [, version, platform, path] = /^gVisor \(runsc (.+), (\w+)\), (.+)$/.exec(text) ?? [];
  if (version === undefined || platform === undefined || path === undefined) throw new Error(`Not gVisor: ${text}`);
  return { version, platform, path };
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}
