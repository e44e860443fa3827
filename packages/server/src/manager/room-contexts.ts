import type { ManagerContext, ManagerOptions } from "./context.ts";

/** What each room of the manager knows of the rest; {@link ManagerContext} has it all. */
type Of<Member extends keyof ManagerContext, Option extends keyof ManagerOptions> = Pick<ManagerContext, Member> & {
  readonly options: Pick<ManagerOptions, Option>;
};

/** Work that is measured and told. */
export type TrackedContext = Of<"operations", "clock" | "observer">;

/** Whether a sandbox may run and be heard now. */
export type FreezeContext = Of<"durable" | "events" | "inBackground" | "nowMs" | "sandboxes", "clock">;

/** A sandbox to work with. */
export type RunningContext = FreezeContext & Of<"recentHandoffs" | "storedHead", never>;

/** The end of a copy here. */
export type EndContext = Of<"durable" | "events", never>;

/** Snapshots, as records. */
export type LibraryContext = Of<"snapshots", never>;

/** The backends that the server has. */
export type BackendsContext = Of<never, "backends" | "defaultBackend" | "profiles">;

export type ProcessContext = RunningContext & Of<"backend" | "collected" | "executions", "observer">;

export type FilesContext = RunningContext & Of<"backend", never>;

/** States, on their way to the store. */
export type SavingContext = FreezeContext &
  TrackedContext &
  RemovalContext &
  Of<"draining" | "untilEnded", "durable" | "workDirectory">;

/** What is removed may be needed by a sandbox here, or in the store. */
export type RemovalContext = LibraryContext & Of<"durable" | "events" | "sandboxes", "backends" | "observer">;

/** Looks: what there is, how it is, what it uses. */
export type ObservingContext = RunningContext &
  TrackedContext &
  BackendsContext &
  Of<
    "backend" | "draining" | "reported" | "snapshots" | "untilEnded",
    "durable" | "maxSandboxes" | "peers" | "scrub" | "url" | "workDirectory"
  >;

/** What a sandbox is going to be made of, and where. */
export type PlanContext = BackendsContext &
  Of<
    "backend" | "durable",
    | "clock"
    | "defaultIdleTimeoutMs"
    | "defaultMaxLoss"
    | "installation"
    | "profiles"
    | "resourceLimits"
    | "resumeTtlMs"
    | "secrets"
  >;

/** Test restores. */
export type ProofContext = ObservingContext & Of<"checkResources" | "proofs", "maxSandboxes" | "proveSnapshots">;
