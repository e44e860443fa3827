import { z } from "zod";
import { LockedJsonFile } from "../support/locked-json-file.ts";
import { parseSnapshot, type StoredSnapshot } from "./snapshot-record.ts";
import type { SnapshotRepository } from "./snapshot-repository.ts";

/** `snapshots.json`. Unknown fields and entries are kept. */
const fileSchema = z.looseObject({
  format: z.literal(1),
  snapshots: z.array(z.looseObject({ id: z.string() })),
});
type Content = z.infer<typeof fileSchema>;
type Entries = readonly Content["snapshots"][number][];

/** Snapshot records in a file of this machine, shared by several processes. */
export class SnapshotFile {
  readonly path: string;
  readonly #file: LockedJsonFile<Content>;

  constructor(path: string) {
    this.path = path;
    this.#file = new LockedJsonFile<Content>(path, fileSchema, { format: 1, snapshots: [] });
  }

  async read(): Promise<readonly StoredSnapshot[]> {
    return recordsIn((await this.#file.read()).snapshots);
  }

  /** Adds, replaces or removes a record. */
  async put(id: string, snapshot: StoredSnapshot | undefined): Promise<void> {
    await this.#transact((present) => [...present.filter((each) => each.id !== id), ...toList(snapshot)]);
  }

  async change(change: (present: readonly StoredSnapshot[]) => readonly StoredSnapshot[]): Promise<void> {
    await this.#transact((entries) => {
      const known = recordsIn(entries);
      const knownIds = new Set(known.map(({ id }) => id));
      return [...entries.filter(({ id }) => !knownIds.has(id)), ...change(known)];
    });
  }

  async #transact(change: (present: Entries) => Entries): Promise<void> {
    await this.#file.change((content) => ({ ...content, snapshots: [...change(content.snapshots)] }));
  }
}

/**
 * Mirrors the snapshots of a directory store in a file, for people and programs that read it. The store decides: a
 * failure here is reported, and changes nothing.
 */
export class SnapshotMirror {
  readonly #file: SnapshotFile;
  readonly #onError: (error: unknown) => void;

  constructor(file: SnapshotFile, onError: (error: unknown) => void) {
    this.#file = file;
    this.#onError = onError;
  }

  readonly put = async (id: string, snapshot: StoredSnapshot | undefined): Promise<void> => {
    await this.#file.put(id, snapshot).catch(this.#onError);
  };

  /** Synchronizes with the store: other servers may have changed it, or died half-way. */
  async rebuild(repository: SnapshotRepository): Promise<void> {
    try {
      const snapshots = await repository.list();
      await this.#file.change(() => snapshots);
    } catch (error) {
      this.#onError(error);
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
