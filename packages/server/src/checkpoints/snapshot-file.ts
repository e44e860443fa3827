import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { isErrno, SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { acquireFileLock } from "../support/file-lock.ts";
import { SerialQueue } from "../support/serial-queue.ts";
import { parseSnapshot, type StoredSnapshot } from "./snapshot-record.ts";

const LOCK_WAIT_MS = 10_000;

/** `snapshots.json`. What is not known in it is kept, also whole entries. */
const fileSchema = z.looseObject({
  format: z.literal(1),
  snapshots: z.array(z.looseObject({ id: z.string() })),
});
type Content = z.infer<typeof fileSchema>;
type Entries = readonly Content["snapshots"][number][];

/** The records of snapshots in a file of this machine, for several processes at once. */
export class SnapshotFile {
  readonly path: string;
  readonly #queue = new SerialQueue();

  constructor(path: string) {
    this.path = path;
  }

  async read(): Promise<readonly StoredSnapshot[]> {
    return recordsIn((await this.#content()).snapshots);
  }

  /** Puts a record in its place, or takes it out. */
  async put(id: string, snapshot: StoredSnapshot | undefined): Promise<void> {
    await this.#transact((present) => [...present.filter((each) => each.id !== id), ...toList(snapshot)]);
  }

  /** What `change` makes of the records is what is there afterwards, whole, also if the power fails. */
  async change(change: (present: readonly StoredSnapshot[]) => readonly StoredSnapshot[]): Promise<void> {
    await this.#transact((entries) => {
      const known = recordsIn(entries);
      const knownIds = new Set(known.map(({ id }) => id));
      return [...entries.filter(({ id }) => !knownIds.has(id)), ...change(known)];
    });
  }

  async #transact(change: (present: Entries) => Entries): Promise<void> {
    await this.#queue.run(async () => {
      await mkdir(dirname(this.path), { recursive: true });
      const lock = await acquireFileLock(`${this.path}.lock`, { waitMs: LOCK_WAIT_MS });
      if (lock === undefined) {
        throw new SandboxerError("store_unavailable", `Another process holds ${this.path}.lock.`, {
          hint: "Try again; if it stays, look for a server that hangs.",
        });
      }
      try {
        const content = await this.#content();
        await this.#replace({ ...content, snapshots: [...change(content.snapshots)] });
      } finally {
        await lock.release();
      }
    });
  }

  async #content(): Promise<Content> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      if (isErrno(error) && error.code === "ENOENT") return { format: 1, snapshots: [] };
      throw error;
    }
    try {
      return fileSchema.parse(JSON.parse(text));
    } catch (error) {
      throw new SandboxerError("store_unavailable", `The record of snapshots ${this.path} cannot be read.`, {
        cause: error,
        hint: "Restore the file from a backup, or move it away to begin with none. A later release may have written it.",
      });
    }
  }

  async #replace(content: Content): Promise<void> {
    const draft = `${this.path}.${randomUUID()}`;
    try {
      const handle = await open(draft, "wx", 0o600);
      try {
        await handle.writeFile(`${JSON.stringify(content, undefined, 2)}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(draft, this.path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    const folder = await open(dirname(this.path));
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

function recordsIn(entries: Entries): StoredSnapshot[] {
  return entries.flatMap((each) => {
    try {
      return [parseSnapshot(each, each.id)];
    } catch {
      return [];
    }
  });
}

function toList<T>(value: T | undefined): T[] {
  return value === undefined ? [] : [value];
}
