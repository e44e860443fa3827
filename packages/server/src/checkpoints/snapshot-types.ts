import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../backends/backend.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { KeyOptions } from "./data-keys.ts";
import type { StoredSnapshot } from "./snapshot-record.ts";

/** The facts about a snapshot before it is taken. */
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
  | "affinity"
  | "retention"
  | "encryption"
>;

export interface CapturedState {
  readonly state: SnapshotPayload;
  /** The encoded file list; absent if the backend has no files. */
  readonly files?: Uint8Array;
}

export interface SaveSnapshotOptions extends CallOptions, KeyOptions {
  /** Whether the name moves from another snapshot that has it; otherwise `name_taken`. */
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
  /** The result of a test restore. */
  readonly proof?: Pick<StoredSnapshot, "proven" | "unproven"> | undefined;
}

export function snapshotNotFound(idOrName: string): SandboxerError {
  return new SandboxerError("snapshot_not_found", `There is no snapshot ${JSON.stringify(idOrName.slice(0, 150))}.`);
}

export function needsStore(): SandboxerError {
  return new SandboxerError("checkpoint_disabled", "Snapshots of this backend need a store, but the server has none.", {
    hint: "Start the server with --store.",
  });
}
