import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotKind } from "../backends/backend.ts";
import { detailsOf } from "./snapshot-details.ts";
import type { LoadedState } from "./unpacked-state.ts";
import type { SnapshotFile } from "./snapshot-file.ts";
import {
  type CapturedState,
  type NewSnapshot,
  type SavedSnapshot,
  type SaveSnapshotOptions,
  type SnapshotChanges,
  type SnapshotLibrary,
  snapshotNotFound,
} from "./snapshot-library.ts";
import { nameTaken } from "./snapshot-names.ts";
import { checkSnapshotName, type StoredSnapshot, successor } from "./snapshot-record.ts";
import { announcement } from "./snapshot-save.ts";

/** Snapshots of a server without a store: records only, for backends that keep the states themselves. */
export class LocalSnapshots implements SnapshotLibrary {
  readonly keepsBytes = false;
  readonly #file: SnapshotFile;

  constructor(file: SnapshotFile) {
    this.#file = file;
  }

  async save(
    snapshot: NewSnapshot,
    capture: () => Promise<CapturedState>,
    options: SaveSnapshotOptions,
  ): Promise<SavedSnapshot> {
    const { id, name } = snapshot;
    if (name !== null) checkSnapshotName(name);
    if (name !== null && !options.replaceName) checkFree(await this.#file.read(), name, id);
    const { state } = await capture();
    if (state.members.length > 0) throw needsStore();
    const record: StoredSnapshot = successor(
      undefined,
      {
        ...announcement(snapshot, ""),
        state: "ready",
        kind: state.kind,
        requirements: { ...state.requirements },
        details: detailsOf(state),
      },
      randomUUID(),
    );
    let replacedId: string | undefined;
    await this.#file.change((present) => {
      if (name === null) return [...present, record];
      if (!options.replaceName) checkFree(present, name, id);
      replacedId = present.find((each) => each.name === name)?.id;
      const nameless = present.map((each) => (each.id === replacedId ? { ...each, name: null } : each));
      return [...nameless, record];
    });
    return { snapshot: record, replacedId };
  }

  async get(idOrName: string): Promise<StoredSnapshot | undefined> {
    return (await this.#file.read()).find(({ id, name }) => id === idOrName || name === idOrName);
  }

  async list(): Promise<readonly StoredSnapshot[]> {
    return await this.#file.read();
  }

  async load(id: string): Promise<LoadedState> {
    const { kind, requirements } = await this.verify(id);
    // A kind of a later release is refused by the backend that is asked to load it.
    return { kind: kind as SnapshotKind, members: [], requirements: requirements ?? {}, verified: Promise.resolve() };
  }

  /** There is nothing here to look at: the backend finds out when it loads it. */
  async verify(id: string): Promise<StoredSnapshot> {
    const found = await this.get(id);
    if (found === undefined) throw snapshotNotFound(id);
    return found;
  }

  async note(): Promise<void> {}

  async readFiles(id: string): Promise<undefined> {
    await this.verify(id);
  }

  async checkKey(): Promise<void> {}

  async amend(id: string, { name, labels, pinned, proof }: SnapshotChanges): Promise<StoredSnapshot> {
    if (typeof name === "string") checkSnapshotName(name);
    await this.#file.change((present) => {
      if (typeof name === "string") checkFree(present, name, id);
      return present.map((each) => {
        if (each.id !== id) return each;
        const pin = pinned === undefined ? {} : { pinned };
        const changed = { ...each, ...(name === undefined ? {} : { name }), ...pin };
        const next = { ...changed, ...(labels === undefined ? {} : { labels: { ...labels } }), ...proof };
        return successor(each, next, randomUUID());
      });
    });
    return await this.verify(id);
  }

  async remove(id: string, refuse: (present: StoredSnapshot) => Promise<void>): Promise<void> {
    await refuse(await this.verify(id));
    await this.#file.put(id, undefined);
  }
}

function checkFree(present: readonly StoredSnapshot[], name: string, id: string): void {
  const holder = present.find((each) => each.name === name && each.id !== id);
  if (holder !== undefined) throw nameTaken(name, holder.id);
}

export function needsStore(): SandboxerError {
  return new SandboxerError("checkpoint_disabled", "Snapshots of this backend need a store, and the server has none.", {
    hint: "Start the server with --store.",
  });
}
