import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Watchdog } from "../../chaos/servers/watchdog.ts";
import { listeningUrl } from "../../../../../../test/kit/server/listening-url.ts";

const COMMAND = fileURLToPath(new URL("../../../../../cli/bin/sandboxer.mjs", import.meta.url));
const HOOKS = new URL("./soak-hooks.ts", import.meta.url).href;
const START_LIMIT_MS = 90_000;
const CGROUPS = "/sys/fs/cgroup";

/** Figures that must not grow with the number of created and deleted sandboxes. */
export interface Usage {
  readonly heapBytes: number;
  /** Buffers, which are not in the heap. */
  readonly outsideBytes: number;
  readonly descriptors: number;
  /** The cgroups of the server's sandboxes. */
  readonly cgroups: number;
  /** Files and folders below the data directory, run directories included. */
  readonly dataEntries: number;
  /** The same below the server's own TMPDIR. */
  readonly temporaryEntries: number;
  /** The same below the store. The records of deleted sandboxes stay there, so it grows. */
  readonly storeEntries: number;
}

/** `sandboxer serve` with everything that it may leave behind in one folder. */
export class SoakedServer {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(folder: string, flags: readonly string[]): Promise<SoakedServer> {
    for (const name of ["data", "store", "tmp"]) mkdirSync(join(folder, name), { recursive: true });
    const places = ["--data-directory", join(folder, "data"), "--store", join(folder, "store")];
    const log = openSync(join(folder, "log"), "a");
    const serve = ["serve", "--json", "--port", "0", "--no-console", "--rate-limit", "0", ...places, ...flags];
    const child = spawn(process.execPath, [`--import=${HOOKS}`, COMMAND, ...serve], {
      stdio: ["ignore", "pipe", log, "ipc"],
      env: { ...process.env, TMPDIR: join(folder, "tmp") },
      detached: true,
    });
    closeSync(log);
    if (child.pid !== undefined) new Watchdog().killsGroup(child.pid);
    const said = (): string => readFileSync(join(folder, "log"), "utf8").slice(-2_000);
    return new SoakedServer(await listeningUrl(child, START_LIMIT_MS, said), child, folder);
  }

  async usage(): Promise<Usage> {
    const answer = once(this.#child, "message") as Promise<[Pick<Usage, "heapBytes" | "outsideBytes">]>;
    this.#child.send("sample");
    const [memory] = await answer;
    return {
      ...memory,
      descriptors: readdirSync(`/proc/${this.#child.pid}/fd`).length,
      cgroups: this.#cgroups(),
      dataEntries: entriesOf(join(this.#folder, "data")),
      temporaryEntries: entriesOf(join(this.#folder, "tmp")),
      storeEntries: entriesOf(join(this.#folder, "store")),
    };
  }

  /** An orderly end; gives the exit code. */
  async stop(): Promise<number | null> {
    const exited = once(this.#child, "exit") as Promise<[number | null]>;
    this.#child.kill("SIGTERM");
    return (await exited)[0];
  }

  /** The cgroups below a folder with the name of one of the server's run directories; version 1 has several. */
  #cgroups(): number {
    const run = join(this.#folder, "data", "run");
    const instances = existsSync(run) ? readdirSync(run) : [];
    const folders = (path: string): string[] =>
      readdirSync(path, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .flatMap((entry) => [join(path, entry.name), ...unlessGone(() => folders(join(path, entry.name)))]);
    if (instances.length === 0 || !existsSync(CGROUPS)) return 0;
    const own = folders(CGROUPS).filter((path) => instances.some((instance) => path.includes(`/${instance}/`)));
    return new Set(own.map((path) => basename(path))).size;
  }
}

function entriesOf(folder: string): number {
  return unlessGone(() => readdirSync(folder, { recursive: true })).length;
}

/** A folder that is removed meanwhile is empty. */
function unlessGone(look: () => (string | Buffer)[]): string[] {
  try {
    return look().map(String);
  } catch {
    return [];
  }
}
