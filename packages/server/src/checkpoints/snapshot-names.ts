import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import { changeCell } from "./snapshot-cell.ts";
import { checkSnapshotName, decodeName, HISTORY_LENGTH, isSnapshotName, nameKey } from "./snapshot-record.ts";
import type { StoredName } from "./snapshot-record.ts";

/** Snapshot names in a store. Each is one cell, so that a name moves between snapshots in one step. */
export class SnapshotNames {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** The id of the snapshot that has the name; it may have been deleted. */
  async holder(name: string): Promise<string | undefined> {
    return (await this.#read(name))?.snapshot_id ?? undefined;
  }

  /** Whether a snapshot has the name, or had it and has lost it finally. */
  async standing(name: string, id: string): Promise<"has" | "had" | "never"> {
    const record = await this.#read(name);
    if (record?.snapshot_id === id) return "has";
    return record?.past.includes(id) === true ? "had" : "never";
  }

  /** Gives the name to a snapshot, even if another has it; returns the previous holder. */
  async move(name: string, id: string): Promise<string | undefined> {
    const { before } = await this.#give(name, () => id);
    return before?.snapshot_id === id ? undefined : (before?.snapshot_id ?? undefined);
  }

  /** Gives the name to a snapshot if nobody has it, or only a deleted one. */
  async take(name: string, id: string, isThere: (id: string) => Promise<boolean>): Promise<void> {
    for (;;) {
      const seen = await this.holder(name);
      if (seen === id) return;
      if (seen !== undefined && (await isThere(seen))) throw nameTaken(name, seen);
      const { after } = await this.#give(name, (holder) => ((holder ?? undefined) === seen ? id : undefined));
      if (after?.snapshot_id === id) return;
    }
  }

  /** Frees the name, unless another snapshot has it by now. */
  async release(name: string, id: string): Promise<void> {
    await this.#give(name, (holder) => (holder === id ? null : undefined));
  }

  /** Keeps a snapshot that is about to be removed from getting the name. False if it has it. */
  async condemn(name: string, id: string): Promise<boolean> {
    if (!isSnapshotName(name)) return true;
    const { after } = await this.#change(name, (present) => {
      if (present.snapshot_id === id) return undefined;
      return { ...present, collected: [id, ...(present.collected ?? [])].slice(0, HISTORY_LENGTH) };
    });
    return after?.snapshot_id !== id;
  }

  async #read(name: string): Promise<StoredName | undefined> {
    const cell = isSnapshotName(name) ? await this.#store.readCell(nameKey(name)) : undefined;
    return cell === undefined ? undefined : decodeName(name, cell.body);
  }

  async #give(name: string, next: (holder: string | null) => string | null | undefined) {
    checkSnapshotName(name);
    return await this.#change(name, (present) => {
      const holder = next(present.snapshot_id);
      if (holder === undefined) return undefined;
      if (holder !== null && present.collected?.includes(holder) === true) throw collectedMeanwhile(holder);
      const before = present.snapshot_id === null || present.snapshot_id === holder ? [] : [present.snapshot_id];
      return { ...present, snapshot_id: holder, past: [...before, ...present.past].slice(0, HISTORY_LENGTH) };
    });
  }

  async #change(name: string, change: (present: StoredName) => StoredName | undefined) {
    const unheld: StoredName = { format: 1, name, snapshot_id: null, past: [], nonce: "", history: [] };
    return await changeCell<StoredName>(this.#store, {
      key: nameKey(name),
      decode: (body) => decodeName(name, body),
      change: (present = unheld) => change(present),
    });
  }
}

export function collectedMeanwhile(id: string): SandboxerError {
  return new SandboxerError("checkpoint_failed", `The snapshot ${id} was removed before it was finished.`, {
    hint: "Another server took its server for dead during the save. An earlier snapshot of this name is intact. Try again.",
  });
}

export function nameTaken(name: string, snapshotId: string): SandboxerError {
  return new SandboxerError("name_taken", `The snapshot ${snapshotId} already has the name "${name}".`, {
    details: { name, snapshot_id: snapshotId },
  });
}
