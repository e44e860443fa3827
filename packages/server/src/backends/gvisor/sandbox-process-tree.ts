import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { killQuietly } from "../../support/kill.ts";
import type { AttachedRunsc } from "./runsc.ts";

const REAP_TIMEOUT_MS = 3_000;

/**
 * Ends a sandbox through its kernel. The attached runsc sees that at once and reaps it; if runsc itself were killed,
 * its children would wait for the machine's PID 1 to reap them, which can take seconds.
 */
export async function endSandboxProcesses(attached: AttachedRunsc): Promise<void> {
  const { child, exited } = attached;
  // After its exit, its pid may be reused.
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return void (await exited);
  const kernelPid = await findKernelPid(child.pid);
  if (kernelPid === undefined) child.kill("SIGKILL");
  else killQuietly(kernelPid);
  const timer = setTimeout(() => child.kill("SIGKILL"), REAP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}

/** The process of gVisor's kernel for a sandbox: a child of any thread of the attached runsc. */
export async function findKernelPid(attachedPid: number): Promise<number | undefined> {
  for (const thread of await readdir(`/proc/${attachedPid}/task`).catch(() => [])) {
    const children = await readFile(`/proc/${attachedPid}/task/${thread}/children`, "utf8").catch(() => "");
    for (const pid of children.trim().split(" ").filter(Boolean)) {
      const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      if (commandLine.split("\0").includes("boot")) return Number(pid);
    }
  }
  return undefined;
}

/** The disk use of a sandbox's writable layer. The layer is an unlinked file that its kernel holds open. */
export class Filestore {
  readonly #kernelPid: number;
  readonly #directory: string;
  #descriptor: string | undefined;

  constructor(kernelPid: number, directory: string) {
    this.#kernelPid = kernelPid;
    this.#directory = directory;
  }

  async usedBytes(): Promise<number> {
    this.#descriptor ??= await this.#find();
    if (this.#descriptor === undefined) return 0;
    const info = await stat(this.#descriptor).catch(() => undefined);
    return (info?.blocks ?? 0) * 512;
  }

  async #find(): Promise<string | undefined> {
    const folder = `/proc/${this.#kernelPid}/fd`;
    for (const name of await readdir(folder).catch(() => [])) {
      const target = await readlink(`${folder}/${name}`).catch(() => "");
      if (target.startsWith(`${this.#directory}/`)) return `${folder}/${name}`;
    }
    return undefined;
  }
}
