import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";

/** The states of the protocol, without its schemas; the compiler compares them. */
export const SANDBOX_STATES = Object.keys({
  creating: true,
  restoring: true,
  running: true,
  saving: true,
  destroying: true,
  stored: true,
  unreachable: true,
  destroyed: true,
} satisfies Record<SandboxRecord["state"], true>);

export const SNAPSHOT_STATES = Object.keys({ ready: true, damaged: true, missing: true } satisfies Record<
  SnapshotInfo["state"],
  true
>);
