import type { Answer, CallInput, JsonRouteName, OperationRecord as WireOperation } from "./wire/call-types.ts";
import type { Camel } from "./wire/naming.ts";

type Of<Name extends JsonRouteName> = Camel<NonNullable<Answer<Name>>>;
type ItemOf<Page> = Page extends { items: (infer Item)[] } ? Item : never;
type QueryOf<Name extends JsonRouteName> = Camel<NonNullable<CallInput<Name>["query"]>>;
type BodyOf<Name extends JsonRouteName> = Camel<NonNullable<CallInput<Name>["body"]>>;

/** The records of the server, as the protocol's table says, with names in camelCase. */
export type SandboxRecord = Of<"getSandbox">;
/** A stored sandbox whose record cannot be read. */
export type DamagedSandbox = Of<"listSandboxes">["damaged"][number];
export type AcquireTier = Of<"acquireSandbox">["tier"];
export type SnapshotRecord = Of<"getSnapshot">;
/** What a sandbox that is made of a snapshot has of the captured one. */
export type Carried = Of<"explainSnapshot">;
export type SnapshotDiff = Of<"diffSnapshots">;
/** What a look at saved states has found. */
export type IntegrityReport = Of<"verifySnapshot">;
/** A checkpoint that was restored where nobody could reach it. */
export type ProvenCheckpoint = Of<"proveSandbox">;
export type ScrubStatus = Of<"scrubStatus">;
/** What rules of retention would do to the saved states of a sandbox. */
export type RetentionPreview = Of<"previewRetention">;
/** How much of a destroyed sandbox's data goes with it, and how much others share. */
export type RemovedData = Of<"destroySandbox">;
export type OperationRecord = Camel<WireOperation>;
export type EventRecord = ItemOf<Of<"events">>;
export type ProcessRecord = ItemOf<Of<"listProcesses">>;
export type ProcessTableEntry = ItemOf<Of<"processTable">>;
export type FileEntry = Of<"statFile">;
export type ServerRecord = Of<"serverInfo">;
export type ProfileRecord = NonNullable<Answer<"getProfile">>;
export type BackendRecord = ItemOf<Of<"listBackends">>;
export type InstanceRecord = ItemOf<Of<"listInstances">>;
export type HandoffRecord = Of<"handoffSandbox">;
export type Reachability = Of<"reachability">;
export type SandboxStats = Of<"sandboxStats">;
export type SandboxUsage = Of<"sandboxUsage">;
export type UsageRecord = ItemOf<Of<"listUsage">>;
export type Expiry = Of<"expireSandboxes">;

/** What a new sandbox is to be like; everything has a default. */
export type SandboxSettings = BodyOf<"createSandbox">;
/** What a sandbox that begins with a saved state may have of its own. */
export type RestoreSettings = BodyOf<"restoreSnapshot">;
export type MoveSettings = BodyOf<"moveSandbox">;
export type ForkSettings = BodyOf<"forkSandbox">;
export type SnapshotSettings = BodyOf<"createSnapshot">;
export type SandboxChange = BodyOf<"updateSandbox">;
export type SnapshotChange = BodyOf<"updateSnapshot">;

export type SandboxFilter = Omit<QueryOf<"listSandboxes">, "cursor">;
export type SnapshotFilter = Omit<QueryOf<"listSnapshots">, "cursor">;
export type OperationFilter = Omit<QueryOf<"listOperations">, "cursor">;
