import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../backends/backend.ts";
import { AmbiguousWriteError, type Cell, type ObjectStore } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import { openImage, type OpenImage } from "./open-image.ts";
import { saveImage } from "./save-image.ts";
import {
  decodeSnapshotRecord,
  encodeSnapshotRecord,
  isSnapshotName,
  SNAPSHOT_HISTORY_LENGTH,
  snapshotKey,
  type SnapshotRecord,
  SNAPSHOT_RECORD,
  SNAPSHOTS_FOLDER,
} from "./snapshot-record.ts";
import { unpackImage } from "./unpack.ts";

interface Replacement {
  readonly record: SnapshotRecord;
  /** The image that it replaced, which nobody else will remove. */
  readonly oldImage: string | undefined;
}

export interface SnapshotSaveOptions extends CallOptions {
  readonly wallMs: number;
  /** The sandbox that it was taken of. */
  readonly sandboxId: string;
}

/**
 * Filesystem snapshots by name. The record names the image, so that saving again under the same name replaces the old
 * one in one step: readers get the old or the new, whole.
 */
export class SnapshotRepository {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async save(name: string, state: SnapshotPayload, options: SnapshotSaveOptions): Promise<SnapshotRecord> {
    checkName(name);
    const image = `image_${randomUUID()}.img`;
    const createdAt = new Date(options.wallMs).toISOString();
    const label = { sandboxId: options.sandboxId, createdAt, parent: null };
    const saved = await saveImage(this.#store, snapshotKey(name, image), state, label, options);
    if (saved === "conflict") throw new SandboxerError("internal", `The fresh name ${image} is taken.`);
    const replaced = await this.#replaceRecord({
      format: 1,
      name,
      image,
      sha256: saved.manifestSha256,
      size_bytes: saved.sizeBytes,
      kind: state.kind,
      sandbox_id: options.sandboxId,
      created_at: createdAt,
      history: [],
    });
    if (replaced.oldImage !== undefined) await this.#store.delete(snapshotKey(name, replaced.oldImage));
    return replaced.record;
  }

  async get(name: string): Promise<SnapshotRecord | undefined> {
    checkName(name);
    return (await this.#read(name))?.record;
  }

  async list(): Promise<readonly SnapshotRecord[]> {
    const found: SnapshotRecord[] = [];
    for await (const name of this.#store.listFolders(SNAPSHOTS_FOLDER)) {
      const record = isSnapshotName(name) ? await this.get(name) : undefined;
      if (record !== undefined) found.push(record);
    }
    return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Extracts a snapshot into an existing, empty folder. */
  async load(name: string, into: string, options: CallOptions = {}): Promise<SnapshotPayload> {
    return await unpackImage(this.#store, await this.#openPresent(name), into, options);
  }

  /** The image that the record names; once more when it was replaced between the two looks. */
  async #openPresent(name: string): Promise<OpenImage> {
    for (let tried: string | undefined; ;) {
      const record = await this.get(name);
      if (record === undefined) {
        throw new SandboxerError("snapshot_not_found", `There is no filesystem snapshot "${name}".`);
      }
      try {
        return await openImage(this.#store, snapshotKey(name, record.image));
      } catch (error) {
        if (record.image === tried) throw error;
        tried = record.image;
      }
    }
  }

  /**
   * The newest save wins, so a conflict is met by putting the record on top. A swap whose answer was lost may have been
   * applied, and another save may have replaced it already; its history tells. An image that was collected is gone, and
   * whoever saved it is told, because every swap is of a record that was read and does not say so.
   */
  async #replaceRecord(fresh: SnapshotRecord): Promise<Replacement> {
    for (let ambiguous = false; ;) {
      const present = await this.#read(fresh.name);
      const history = present === undefined ? [] : [present.record.image, ...present.record.history];
      const ours = history.indexOf(fresh.image);
      if (ours >= 0) return { record: fresh, oldImage: history[ours + 1] };
      const collected = present?.record.collected;
      if (collected?.includes(fresh.image) === true) throw collectedMeanwhile(fresh.name);
      const record = {
        ...fresh,
        history: history.slice(0, SNAPSHOT_HISTORY_LENGTH),
        ...(collected === undefined ? {} : { collected }),
      };
      try {
        const body = encodeSnapshotRecord(record);
        const swap = await this.#store.swapCell(snapshotKey(fresh.name, SNAPSHOT_RECORD), present?.cell.version, body);
        if (swap.outcome === "written") return { record, oldImage: history[0] };
      } catch (error) {
        if (!(error instanceof AmbiguousWriteError)) {
          if (!ambiguous) await this.#store.delete(snapshotKey(fresh.name, fresh.image));
          throw error;
        }
        ambiguous = true;
      }
    }
  }

  async #read(name: string): Promise<{ readonly cell: Cell; readonly record: SnapshotRecord } | undefined> {
    const cell = await this.#store.readCell(snapshotKey(name, SNAPSHOT_RECORD));
    return cell === undefined ? undefined : { cell, record: decodeSnapshotRecord(name, cell.body) };
  }
}

function collectedMeanwhile(name: string): SandboxerError {
  return new SandboxerError("checkpoint_failed", `The image for the filesystem snapshot "${name}" was collected.`, {
    hint: "Its server was taken for dead while it saved. What the name stood for before is intact; try again.",
  });
}

function checkName(name: string): void {
  if (isSnapshotName(name)) return;
  throw new SandboxerError("bad_request", `"${name}" cannot be the name of a filesystem snapshot.`, {
    hint: "Use up to 128 letters, digits, dots, dashes and underscores, beginning with a letter or a digit.",
  });
}
