import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { makeFolder } from "./durable.ts";
import { hasCode } from "../../support/errno.ts";
import { isProcessAlive } from "../../support/kill.ts";

/**
 * The names of files that are being written. Each names its process, so that the next process on the same machine can
 * find abandoned ones. Removing one by mistake fails that write and loses nothing else.
 */
export class TemporaryFiles {
  readonly #folder: string;
  readonly #writer: Writer;
  #isMade = false;

  constructor(root: string) {
    this.#folder = join(root, ".temporary");
    this.#writer = thisProcess();
  }

  /** The folder is created once: if it is missing later, the store has most likely disappeared. */
  async path(): Promise<string> {
    if (!this.#isMade) await makeFolder(this.#folder);
    this.#isMade = true;
    const { host, boot, namespace, pid } = this.#writer;
    return join(this.#folder, [host, boot, namespace, pid, randomUUID()].join("+"));
  }

  /** A failure because of the missing folder is retried once: someone may have cleaned up. */
  noteFailure(error: unknown): void {
    if (hasCode(error, "ENOENT")) this.#isMade = false;
  }

  /** Removes files that dead processes of this machine left. Files of other machines and of live processes stay. */
  async removeAbandoned(): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      if (isAbandoned(name, this.#writer)) await rm(join(this.#folder, name), { force: true, recursive: true });
    }
  }
}

interface Writer {
  readonly host: string;
  readonly boot: string;
  /** Process ids are valid only inside one namespace: two containers may share the store. */
  readonly namespace: string;
  readonly pid: string;
}

function isAbandoned(name: string, self: Writer): boolean {
  const [host, boot, namespace, pid] = name.split("+");
  if (host !== self.host) return false;
  if (boot !== self.boot) return true;
  return namespace === self.namespace && !isProcessAlive(Number(pid));
}

function thisProcess(): Writer {
  return {
    host: hostname().replaceAll(/[^A-Za-z0-9.-]/g, "_"),
    boot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    namespace: attempt(() => readlinkSync("/proc/self/ns/pid").replaceAll(/\D/g, "")),
    pid: String(process.pid),
  };
}

/** Machines without /proc count as one boot and one namespace. */
function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return "0";
  }
}
