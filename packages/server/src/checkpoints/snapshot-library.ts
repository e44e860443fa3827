import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../backends/backend.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { LoadedState, UnpackOptions } from "./unpacked-state.ts";
import type { KeyOptions } from "./keys/key-choice.ts";
import type { StoredSnapshot } from "./snapshot-record.ts";

/** What is known of a snapshot before it is taken. */
export type NewSnapshot = Pick<
  StoredSnapshot,
  | "id"
  | "name"
  | "reason"
  | "mode"
  | "labels"
  | "sandbox_id"
  | "sandbox_name"
  | "parent"
  | "created_at"
  | "backend"
  | "profile"
  | "spec"
  | "key"
  | "spec_hash"
  | "flags"
  | "idle_timeout"
  | "max_loss"
  | "retention"
  | "encryption"
>;

export interface CapturedState {
  readonly state: SnapshotPayload;
  /** The list of files, encoded; absent where the backend has no files. */
  readonly files?: Uint8Array;
}

export interface SaveSnapshotOptions extends CallOptions, KeyOptions {
  /** Whether a name that another snapshot has goes over; else that is `name_taken`. */
  readonly replaceName: boolean;
  /** The key of the image that its state resembles most. */
  readonly base?: string | undefined;
}

export interface SavedSnapshot {
  readonly snapshot: StoredSnapshot;
  /** The snapshot that had the name before. */
  readonly replacedId: string | undefined;
}

export interface SnapshotChanges {
  readonly name?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly pinned?: boolean | undefined;
  /** How a test restore went. */
  readonly proof?: Pick<StoredSnapshot, "proven" | "unproven"> | undefined;
}

/**
 * The snapshots that a server can see. What it hands out are those that are there: not those on their way in or out.
 * The `name` of a record is the one that it has now. Unknown ids are `snapshot_not_found`.
 */
export interface SnapshotLibrary {
  /** Whether it can keep the bytes of a state, or records only. */
  readonly keepsBytes: boolean;

  /** Announces the snapshot, has it captured, and keeps it. On failure nothing of it is left that counts. */
  save(
    snapshot: NewSnapshot,
    capture: () => Promise<CapturedState>,
    options: SaveSnapshotOptions,
  ): Promise<SavedSnapshot>;

  /** By id or name. */
  get(idOrName: string): Promise<StoredSnapshot | undefined>;

  /** In no particular order. */
  list(): Promise<readonly StoredSnapshot[]>;

  /** Puts the state into an existing, empty folder. A state that is damaged or missing is marked so, and an error. */
  load(id: string, into: string, options?: UnpackOptions): Promise<LoadedState>;

  /** Looks at every byte; the record says what was found. */
  verify(id: string, options?: CallOptions & KeyOptions): Promise<StoredSnapshot>;

  /** Writes down what somebody found who has looked at every byte. One that has gone meanwhile needs it no more. */
  note(id: string, state: "ready" | "damaged" | "missing", problem: string | null): Promise<void>;

  /** The encoded list of files; undefined when there is none. */
  readFiles(id: string, options?: KeyOptions): Promise<Uint8Array | undefined>;

  /** Throws what {@link load} would for want of a key. */
  checkKey(id: string, options: KeyOptions): Promise<void>;

  amend(id: string, changes: SnapshotChanges): Promise<StoredSnapshot>;

  /**
   * Removes a snapshot, unless `refuse` throws. It is asked twice: the second time nobody can begin with the snapshot any
   * more, so that whoever has begun is seen, and whoever has not finds out.
   */
  remove(id: string, refuse: (present: StoredSnapshot) => Promise<void>): Promise<void>;
}

export function snapshotNotFound(idOrName: string): SandboxerError {
  return new SandboxerError("snapshot_not_found", `There is no snapshot ${JSON.stringify(idOrName.slice(0, 150))}.`);
}

export function needsStore(): SandboxerError {
  return new SandboxerError("checkpoint_disabled", "Snapshots of this backend need a store, and the server has none.", {
    hint: "Start the server with --store.",
  });
}
