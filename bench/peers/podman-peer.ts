import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { debianPrograms } from "../../test/kit/services/debian-programs.ts";
import type { Lab } from "../lab.ts";
import { timed } from "../rounds.ts";
import { FILE_SAID, HOLD_AND_TICK, SAY_FILE, SAY_HELLO, WRITE_FILE, type Peer } from "./peer.ts";
import { lastLine, whyNoCriu, type PodmanPrograms } from "./podman-programs.ts";

const execute = promisify(execFile);
const IMAGE = "bench-host";
const LIMIT_MS = 120_000;

/** podman writes there whatever folders it is given. */
const FOREIGN_FOLDERS = ["/etc/containers/networks", "/var/lib/containers", "/run/containers"];

/** Containers of podman, which has no engine: each step is a command. */
export async function openPodman(lab: Lab, programs: PodmanPrograms): Promise<Peer> {
  const podman = await Podman.open(lab, programs);
  const box = await podman.start(["sleep", "infinity"]);
  return {
    name: "podman (runc)",
    work: {
      run: {
        what: { run: "podman run of bash, to its first byte" },
        once: async () => {
          const elapsedMs = await podman.firstByte(IMAGE, SAY_HELLO, "hello");
          return { run: elapsedMs, "run-ahead": elapsedMs };
        },
      },
      exec: {
        what: { exec: "podman exec ID /bin/true" },
        once: async () => ({ exec: await timed(() => podman.call("exec", box, "/bin/true")) }),
      },
      files: {
        what: {
          commit: "podman commit: a layer in its folder, on this machine only",
          "from-commit": "podman run of `stat` from that image, to its first byte",
        },
        once: () => files(podman),
      },
      memory: {
        what: { save: "podman container checkpoint, through CRIU", restore: "podman container restore" },
        once: () => memory(podman, programs),
      },
    },
  };
}

async function files(podman: Podman): Promise<{ commit: number; "from-commit": number }> {
  const id = await podman.start(["sleep", "infinity"]);
  try {
    await podman.call("exec", id, ...WRITE_FILE);
    const commit = await timed(() => podman.call("commit", "--quiet", id, "bench-committed"));
    return { commit, "from-commit": await podman.firstByte("bench-committed", SAY_FILE, FILE_SAID) };
  } finally {
    await podman.remove(id);
    await podman.call("rmi", "--force", "bench-committed").catch(() => "");
  }
}

async function memory(podman: Podman, programs: PodmanPrograms): Promise<{ save: number; restore: number }> {
  const id = await podman.start(HOLD_AND_TICK);
  try {
    const save = await timed(() => podman.call("container", "checkpoint", id)).catch(async (error: unknown) => {
      throw new Error(`${await whyNoCriu(programs)} podman says: ${lastLine(error)}`, { cause: error });
    });
    return { save, restore: await timed(() => podman.call("container", "restore", id)) };
  } finally {
    await podman.remove(id);
  }
}

class Podman {
  readonly #programs: PodmanPrograms;
  readonly #folder: string;

  private constructor(programs: PodmanPrograms, folder: string) {
    this.#programs = programs;
    this.#folder = folder;
  }

  static async open(lab: Lab, programs: PodmanPrograms): Promise<Podman> {
    const foreign = FOREIGN_FOLDERS.filter((path) => !existsSync(path));
    const folder = await mkdtemp(join(lab.scratch, "podman-"));
    lab.cleanUp.add(async () => {
      await execute("umount", ["-l", join(folder, "root/overlay")]).catch(() => {});
      for (const path of [folder, ...foreign]) await rm(path, { recursive: true, force: true });
    });
    const podman = new Podman(programs, folder);
    lab.cleanUp.add(async () => void (await podman.call("rm", "--force", "--all", "--time=0").catch(() => "")));
    lab.versions["podman"] = (await podman.call("--version")).replace(/^podman version /, "");
    await podman.#importImage();
    return podman;
  }

  async call(...args: readonly string[]): Promise<string> {
    const { stdout } = await execute(this.#programs.podman, [...this.#flags, ...args], {
      env: this.#environment,
      timeout: LIMIT_MS,
    });
    return stdout.trim();
  }

  start(command: readonly string[]): Promise<string> {
    return this.call("run", "--detach", ...RUN_FLAGS, IMAGE, ...command);
  }

  async remove(id: string): Promise<void> {
    await this.call("rm", "--force", "--time=0", id);
  }

  /**
   * The first output of a new container; the command is not awaited, because it lingers after the end of its container.
   */
  async firstByte(image: string, command: readonly string[], wanted: string): Promise<number> {
    const name = `first-${performance.now().toFixed(0)}`;
    const startMs = performance.now();
    const child = spawn(
      this.#programs.podman,
      [...this.#flags, "run", `--name=${name}`, ...RUN_FLAGS, image, ...command],
      {
        env: this.#environment,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let words = "";
    child.stderr.on("data", (chunk: Buffer) => (words += chunk.toString()));
    const said = await new Promise<string>((resolve) => {
      child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString()));
      child.once("close", () => resolve(""));
    });
    const elapsedMs = performance.now() - startMs;
    child.kill("SIGKILL");
    await this.remove(name);
    if (said.trim() !== wanted) throw new Error(`podman run said ${JSON.stringify(said)}: ${words.slice(-500)}`);
    return elapsedMs;
  }

  get #flags(): string[] {
    return [
      `--root=${join(this.#folder, "root")}`,
      `--runroot=${join(this.#folder, "runroot")}`,
      `--tmpdir=${join(this.#folder, "tmp")}`,
      `--network-config-dir=${join(this.#folder, "networks")}`,
      `--runtime=${join(debianPrograms.bin, "runc")}`,
      `--conmon=${this.#programs.conmon}`,
      "--cgroup-manager=cgroupfs",
      "--events-backend=none",
      "--storage-driver=overlay",
    ];
  }

  get #environment(): NodeJS.ProcessEnv {
    return { ...process.env, ...this.#programs.env, HOME: this.#folder };
  }

  /** A root whose programs are this machine's, mounted. */
  async #importImage(): Promise<void> {
    const root = join(this.#folder, "image");
    for (const name of ["usr", "etc", "proc", "sys", "dev", "tmp", "workspace"]) {
      await mkdir(join(root, name), { recursive: true });
    }
    for (const name of ["bin", "sbin", "lib", "lib64"]) await symlink(`usr/${name}`, join(root, name));
    await writeFile(join(root, "etc/passwd"), "root:x:0:0::/:/bin/sh\n");
    const archive = join(this.#folder, "image.tar");
    await execute("tar", ["-C", root, "-cf", archive, "."]);
    await this.call("import", "--quiet", archive, IMAGE);
  }
}

/** Limits that every machine allows: podman's defaults are higher. */
const RUN_FLAGS = [
  "--network=none",
  "--volume=/usr:/usr:ro",
  "--log-driver=none",
  "--ulimit=nofile=1024:4096",
  "--ulimit=nproc=4096:4096",
];
