import type { SandboxState } from "@sandboxer/protocol";

/** Operations whose number and duration are worth knowing. */
export type OperationName =
  | "create"
  | "restore"
  | "execute"
  | "checkpoint"
  | "live_checkpoint"
  | "filesystem_snapshot"
  | "snapshot"
  | "prove"
  | "fork"
  | "rewind"
  | "promote"
  | "move"
  | "destroy"
  | "recreate";

export interface OperationRecord {
  readonly operation: OperationName;
  readonly sandboxId: string;
  readonly backend: string;
  readonly elapsedMs: number;
  readonly outcome: "ok" | "error";
  readonly error?: unknown;
  readonly sizeBytes?: number;
  /** Milliseconds of each part. */
  readonly phases?: Readonly<Record<string, number>>;
  readonly reason?: string;
}

/** Is told of everything that happens; logs and metrics are built from it. Must not throw. */
export interface Observer {
  operation(record: OperationRecord): void;
  state(sandboxId: string, from: SandboxState | undefined, to: SandboxState): void;
  output(bytes: number): void;
  /** Background work failed. */
  problem(message: string, context: Readonly<Record<string, unknown>>): void;
}
