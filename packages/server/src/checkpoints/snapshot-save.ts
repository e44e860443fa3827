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
 * One snapshot on its way into a store: announced while it is captured, then its image, then marked as ready. If this
 * server is considered dead meanwhile, a collection condemns the announcement, and the last step fails.
 */
export class SnapshotSave {
  readonly #store: ObjectStore;
  readonly #images: ImageStore;
  readonly #snapshot: NewSnapshot;
  readonly #publisher: string;
  /** Its encryption, once known. */
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
    // A failure surfaces below, after the capture.
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

  /** Leftovers of a failure are for garbage collection: the record names their server, or none. */
  async #withdraw(): Promise<void> {
    const { id } = this.#snapshot;
    const { after } = await changeSnapshot(this.#store, id, (present) =>
      present?.state === "saving" ? { ...present, state: "removing", removed_by: "" } : undefined,
    );
    // It may be ready in spite of the error, if the answer was lost.
    if (after !== undefined && after.state !== "removing") return;
    await removeSnapshot(this.#store, id);
    if (this.#dataKeyId !== undefined) await this.#images.release(this.#dataKeyId, snapshotHolder(id));
  }
}

/**
 * Removes a snapshot that no sandbox can be created from any more: its record last, which shows an interrupted removal.
 */
export async function removeSnapshot(store: ObjectStore, id: string): Promise<void> {
  await store.delete(imageKey(id));
  await store.delete(filesKey(id));
  await store.deleteCell(recordKey(id));
  // From here on nobody can publish under this id: only an empty folder is left, or what a dead server still writes.
  await store.deleteTree(snapshotFolder(id));
}

/** The record before anything is known of the state. */
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

/** The plain facts in a backend's description of a state: where it is kept, how large it is there. */
function detailsOf({ requirements }: SnapshotPayload): Record<string, string> {
  const { record } = requirements;
  const words = { ...requirements, ...(typeof record === "object" ? record : {}) };
  return Object.fromEntries(Object.entries(words).filter((entry): entry is [string, string] => isWord(entry[1])));
}

function isWord(value: unknown): boolean {
  return typeof value === "string" && value.length <= 1024;
}
