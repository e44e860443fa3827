import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { DataKey, KeyOptions } from "./data-keys.ts";
import type { WriteImageOptions } from "./image-context.ts";
import type { ImageStore } from "./image-store.ts";
import { snapshotHolder } from "./keys/data-key-cell.ts";
import { sealBytes } from "./keys/sealed-bytes.ts";
import { changeSnapshot } from "./snapshot-cell.ts";
import type { CapturedState, NewSnapshot } from "./snapshot-types.ts";
import { collectedMeanwhile } from "./snapshot-names.ts";
import { filesKey, imageKey, recordKey, snapshotFolder, type StoredSnapshot } from "./snapshot-record.ts";
import type { SnapshotPayload } from "../backends/backend.ts";

/**
 * One snapshot on its way into a store: announced while it is captured, then its image, then the word that it is ready.
 * If this server is taken for dead meanwhile, the announcement is condemned by collection, and the last word fails.
 */
export class SnapshotSave {
  readonly #store: ObjectStore;
  readonly #images: ImageStore;
  readonly #snapshot: NewSnapshot;
  readonly #publisher: string;
  /** What it is under, once that is known. */
  #dataKeyId: string | undefined;

  constructor(store: ObjectStore, images: ImageStore, snapshot: NewSnapshot, publisher: string) {
    this.#store = store;
    this.#images = images;
    this.#snapshot = snapshot;
    this.#publisher = publisher;
  }

  async run(
    capture: () => Promise<CapturedState>,
    { presentedKey, ...options }: CallOptions & WriteImageOptions & KeyOptions,
  ): Promise<StoredSnapshot> {
    const announced = this.#announce();
    // Met below, after the capture.
    announced.catch(() => {});
    try {
      const captured = await capture();
      await announced;
      const { id, encryption } = this.#snapshot;
      const written = await this.#images.withKey(
        { encryption, presentedKey },
        snapshotHolder(id),
        options.base,
        async (dataKey) => {
          this.#dataKeyId = dataKey?.id;
          return await this.#write(captured, dataKey, options);
        },
      );
      return await this.#publish({ ...written, state: "ready" });
    } catch (error) {
      await announced.catch(() => {});
      await this.#withdraw().catch(() => {});
      throw error;
    }
  }

  async #announce(): Promise<void> {
    const { id } = this.#snapshot;
    await changeSnapshot(this.#store, id, (present) => {
      if (present !== undefined) throw new SandboxerError("internal", `The fresh name ${recordKey(id)} is taken.`);
      return announcement(this.#snapshot, this.#publisher);
    });
  }

  async #write(
    { state, files }: CapturedState,
    dataKey: DataKey | undefined,
    options: CallOptions & WriteImageOptions,
  ): Promise<Partial<StoredSnapshot>> {
    const { id, sandbox_id: sandboxId, created_at: createdAt } = this.#snapshot;
    const label = { sandboxId, createdAt, parent: null };
    if (files !== undefined) {
      await this.#store.write(filesKey(id), [dataKey === undefined ? files : sealBytes(dataKey, id, files)]);
    }
    const saved = await this.#images.save([imageKey(id)], state, label, { ...options, snapshotId: id, dataKey });
    return {
      kind: state.kind,
      image_sha256: saved.sha256,
      size_bytes: saved.sizeBytes,
      added_bytes: saved.addedBytes,
      requirements: { ...state.requirements },
      has_files: files !== undefined,
      details: detailsOf(state),
    };
  }

  async #publish(written: Partial<StoredSnapshot>): Promise<StoredSnapshot> {
    const { id } = this.#snapshot;
    const { after } = await changeSnapshot(this.#store, id, (present) => {
      if (present?.state !== "saving") throw collectedMeanwhile(id);
      return { ...present, ...written };
    });
    if (after === undefined) throw collectedMeanwhile(id);
    return after;
  }

  /** What stays when this fails is for collection: its record says whose it was, or that it is nobody's. */
  async #withdraw(): Promise<void> {
    const { id } = this.#snapshot;
    const { after } = await changeSnapshot(this.#store, id, (present) =>
      present?.state === "saving" ? { ...present, state: "removing", removed_by: "" } : undefined,
    );
    // It may be ready in spite of the error, when the answer to that was lost.
    if (after !== undefined && after.state !== "removing") return;
    await removeSnapshot(this.#store, id);
    if (this.#dataKeyId !== undefined) await this.#images.release(this.#dataKeyId, snapshotHolder(id));
  }
}

/** Removes one that nobody can begin with any more: its record last, by which a removal that was cut short is seen. */
export async function removeSnapshot(store: ObjectStore, id: string): Promise<void> {
  await store.delete(imageKey(id));
  await store.delete(filesKey(id));
  await store.deleteCell(recordKey(id));
  // From here on nobody can publish under this id: what is left is an empty folder, or what a dead server still writes.
  await store.deleteTree(snapshotFolder(id));
}

/** What a record says before there is anything to say of its state. */
export function announcement(snapshot: NewSnapshot, publisher: string): StoredSnapshot {
  return {
    ...snapshot,
    format: 1,
    state: "saving",
    problem: null,
    publisher,
    kind: "",
    image_sha256: null,
    size_bytes: 0,
    requirements: null,
    has_files: false,
    details: {},
    nonce: "",
    history: [],
  };
}

/** The plain words among what a backend says of a state: where it keeps it, how large it is there. */
function detailsOf({ requirements }: SnapshotPayload): Record<string, string> {
  const { record } = requirements;
  const words = { ...requirements, ...(typeof record === "object" ? record : {}) };
  return Object.fromEntries(Object.entries(words).filter((entry): entry is [string, string] => isWord(entry[1])));
}

function isWord(value: unknown): boolean {
  return typeof value === "string" && value.length <= 1024;
}
