import type { ManagerContext, ManagerOptions } from "./context.ts";

/** The parts of {@link ManagerContext} that each room of the manager uses. */
type Of<Member extends keyof ManagerContext, Option extends keyof ManagerOptions> = Pick<ManagerContext, Member> & {
  readonly options: Pick<ManagerOptions, Option>;
};

/** Measured and reported work. */
export type TrackedContext = Of<"operations", "clock" | "observer">;

/** Whether a sandbox may run and be read now. */
export type FreezeContext = Of<"durable" | "events" | "inBackground" | "nowMs" | "sandboxes", "clock">;

/** A sandbox to work with. */
export type RunningContext = FreezeContext & Of<"recentHandoffs" | "storedHead", never>;

/** Ending a local copy. */
export type EndContext = Of<"durable" | "events", never>;

/** Snapshot records. */
export type LibraryContext = Of<"snapshots", never>;

/** The server's backends. */
export type BackendsContext = Of<never, "backends" | "defaultBackend" | "profiles">;

export type ProcessContext = RunningContext &
  Of<"backend" | "collected" | "draining" | "executions" | "snapshots", "observer" | "workDirectory">;

export type FilesContext = RunningContext & Of<"backend", never>;

/** Saving states to the store. */
export type SavingContext = FreezeContext &
  TrackedContext &
  RemovalContext &
  Of<"draining" | "forking" | "untilEnded", "durable" | "workDirectory">;

/** Removed data may be needed by a sandbox here or in the store. */
export type RemovalContext = LibraryContext & Of<"durable" | "events" | "sandboxes", "backends" | "observer">;

/** Read-only views: lists, records, usage. */
export type ObservingContext = RunningContext &
  TrackedContext &
  BackendsContext &
  Of<
    "backend" | "draining" | "reported" | "room" | "snapshots" | "untilEnded",
    "durable" | "images" | "labels" | "maxSandboxes" | "peerTls" | "peers" | "scrub" | "url" | "workDirectory"
  >;

/** Planning a sandbox: its settings and backend. */
export type PlanContext = BackendsContext &
  Of<
    "backend" | "durable",
    | "clock"
    | "defaultIdleTimeoutMs"
    | "defaultMaxLoss"
    | "defaultNetwork"
    | "installation"
    | "profiles"
    | "resourceLimits"
    | "resumeTtlMs"
    | "secrets"
  >;

/** Test restores. */
export type ProofContext = ObservingContext & Of<"checkResources" | "proofs", "maxSandboxes" | "proveSnapshots">;
