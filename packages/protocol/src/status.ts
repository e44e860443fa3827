/** Statuses of the WebSocket protocol, as they stand on the wire. */
const NAMES = [
  "ERROR",
  "CREATING",
  "RUNNING",
  "NOT_FOUND",
  "CREATION_ERROR",
  "EXECUTION_ERROR",
  "EXECUTION_RUNNING",
  "EXECUTION_DONE",
  "EXECUTION_IN_PROGRESS_ERROR",
  "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR",
  "EXECUTION_FORCE_KILLED",
  "EXECUTION_FORCE_KILL_ERROR",
  "IN_USE",
  "STDIN_ERROR",
  "CHECKPOINTING",
  "CHECKPOINTED",
  "CHECKPOINT_ERROR",
  "RESTORING",
  "RESTORE_ERROR",
  "HANDOFF_IN_PROGRESS",
  "FILESYSTEM_SNAPSHOT_CREATING",
  "FILESYSTEM_SNAPSHOT_CREATED",
  "FILESYSTEM_SNAPSHOT_ERROR",
  "LOCK_ACQUIRING",
  "LOCK_ACQUIRED",
  "LOCK_RELEASE_REQUESTED",
  "LOCK_RENEWAL_ERROR",
  "LOCK_RELEASING",
  "LOCK_RELEASED",
  "DELETING",
  "DELETED",
  "KILLING",
  "KILLED",
  "KILL_ERROR",
  "PERMISSION_DENIAL_ERROR",
] as const;

export type StatusName = (typeof NAMES)[number];
export type Status = `SANDBOX_${StatusName}`;

export const STATUSES: readonly Status[] = NAMES.map((name): Status => `SANDBOX_${name}`);

/** Close codes of the WebSocket protocol. */
export const CloseCode = {
  normal: 1000,
  tooLarge: 1009,
  serverError: 1011,
  restarting: 1012,
  applicationError: 4000,
} as const;
export type CloseCode = (typeof CloseCode)[keyof typeof CloseCode];
