import type { SnapshotFile } from "./snapshot-file.ts";
import type { StoredSnapshot } from "./snapshot-record.ts";
import type { SnapshotRepository } from "./snapshot-repository.ts";

/**
 * Shows the snapshots of a directory store in a file, for people and programs that look there. The store decides: what
 * goes wrong here is told, and changes nothing.
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

  /** As the store has them now: other servers may have changed it, or have died on the way. */
  async rebuild(repository: SnapshotRepository): Promise<void> {
    try {
      const snapshots = await repository.list();
      await this.#file.change(() => snapshots);
    } catch (error) {
      this.#onError(error);
    }
  }
}
