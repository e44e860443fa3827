import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { z } from "zod";
import { acquireFileLock } from "./file-lock.ts";
import { replaceFile } from "./replace-file.ts";
import { SerialQueue } from "./serial-queue.ts";
import { undefinedIf } from "./errno.ts";

const LOCK_WAIT_MS = 10_000;

/** A small JSON file that several processes change: each change is atomic, even if the power fails. */
export class LockedJsonFile<Content extends object> {
  readonly path: string;
  readonly #schema: z.ZodType<Content>;
  readonly #empty: Content;
  readonly #queue = new SerialQueue();

  constructor(path: string, schema: z.ZodType<Content>, empty: Content) {
    this.path = path;
    this.#schema = schema;
    this.#empty = empty;
  }

  /** A format that this release cannot read is refused, never overwritten. */
  async read(): Promise<Content> {
    const text = await readFile(this.path, "utf8").catch(undefinedIf("ENOENT"));
    if (text === undefined) return this.#empty;
    try {
      return this.#schema.parse(JSON.parse(text));
    } catch (error) {
      throw new SandboxerError("store_unavailable", `${this.path} cannot be read.`, {
        cause: error,
        hint: "Restore the file from a backup, or move it away to start fresh. A newer release may have written it.",
      });
    }
  }

  async change(change: (present: Content) => Content): Promise<void> {
    await this.#queue.run(async () => {
      await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
      const lock = await acquireFileLock(`${this.path}.lock`, { waitMs: LOCK_WAIT_MS });
      if (lock === undefined) {
        throw new SandboxerError("store_unavailable", `Another process holds ${this.path}.lock.`, {
          hint: "Try again. If it persists, look for a hanging server.",
        });
      }
      try {
        await replaceFile(this.path, `${JSON.stringify(change(await this.read()), undefined, 2)}\n`);
      } finally {
        await lock.release();
      }
    });
  }
}
