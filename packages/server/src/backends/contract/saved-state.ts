import type { CallOptions } from "../../support/call-options.ts";

export interface SnapshotOptions extends CallOptions {
  readonly mode: "full" | "filesystem";
  readonly leaveRunning: boolean;
  /** Its id; absent: it is not shared, such as a checkpoint. */
  readonly snapshotId?: string;
  /** Called when the sandbox continues, with how long it was stopped. Not called if unknown. */
  readonly onStill?: (ms: number) => void;
}

/** A saved state: its kind, its requirements, and its files in a folder of this machine. */
export interface SnapshotPayload {
  /** The name of its form, which the backends that load it list in `loads`; it is stored with the state. */
  readonly kind: string;
  readonly members: readonly SnapshotMember[];
  /** Compared by the backend before it loads the snapshot. JSON. */
  readonly requirements: Readonly<Record<string, unknown>>;
}

export interface SnapshotMember {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
}

/** A saved state that several sandboxes may start from. */
export interface PreparedState {
  /** States with the same id are the same. */
  readonly id: string;
  /** The facts from its record. */
  readonly sizeBytes: number;
  /** Extracts it into an empty folder, even long after the request. Throws if it was removed. */
  load(folder: string, options: CallOptions): Promise<SnapshotPayload>;
}
