import type { CallOptions } from "../../support/call-options.ts";

export interface SnapshotOptions extends CallOptions {
  readonly mode: "full" | "filesystem";
  readonly leaveRunning: boolean;
  /** Under which it will be known; absent: it is none that others will know, such as a checkpoint. */
  readonly snapshotId?: string;
  /** Told when it goes on: for how long nothing inside did. A backend that does not know tells nothing. */
  readonly onStill?: (ms: number) => void;
}

/** A saved state: its kind, what it needs to be loaded, and its files, which lie in a folder of this machine. */
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

/** A saved state that several sandboxes may begin with. */
export interface PreparedState {
  /** What has the same id is the same. */
  readonly id: string;
  /** Of what it is made of, as its record says. */
  readonly sizeBytes: number;
  /** Puts it into an empty folder, also long after the request. Throws when it is gone. */
  load(folder: string, options: CallOptions): Promise<SnapshotPayload>;
}
