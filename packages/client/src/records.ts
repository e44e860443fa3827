import type { Answer, CallInput, JsonRouteName, OperationRecord as WireOperation } from "./wire/call-types.ts";
import type { Camel } from "./wire/naming.ts";

type Of<Name extends JsonRouteName> = Camel<NonNullable<Answer<Name>>>;
type ItemOf<Page> = Page extends { items: (infer Item)[] } ? Item : never;
type QueryOf<Name extends JsonRouteName> = Camel<NonNullable<CallInput<Name>["query"]>>;
type BodyOf<Name extends JsonRouteName> = Camel<NonNullable<CallInput<Name>["body"]>>;

/** The records of the server, as in the protocol's table, with names in camelCase. */
export type SandboxRecord = Of<"getSandbox">;
/** A stored sandbox whose record cannot be read. */
export type DamagedSandbox = Of<"listSandboxes">["damaged"][number];
export type AcquireTier = Of<"acquireSandbox">["tier"];
export type SnapshotRecord = Of<"getSnapshot">;
/** The parts of a captured sandbox that a restore keeps and loses. */
export type Carried = Of<"explainSnapshot">;
export type SnapshotDiff = Of<"diffSnapshots">;
/** The result of an integrity check. */
export type IntegrityReport = Of<"verifySnapshot">;
/** A test-restored checkpoint. */
export type ProvenCheckpoint = Of<"proveSandbox">;
export type ScrubStatus = Of<"scrubStatus">;
/** The effect of retention rules on the saved states of a sandbox. */
export type RetentionPreview = Of<"previewRetention">;
/** How much of a deleted sandbox's data is removed with it, and how much others share. */
export type RemovedData = Of<"destroySandbox">;
export type ImageRecord = Of<"getImage">;
/** The result of a deletion of images. */
export type RemovedImages = Of<"pruneImages">;
export type OperationRecord = Camel<WireOperation>;
export type EventRecord = ItemOf<Of<"events">>;
export type ProcessRecord = ItemOf<Of<"listProcesses">>;
/** An interpreter that keeps its variables. */
export type InterpreterContext = ItemOf<Of<"listContexts">>;
export type ProcessTableEntry = ItemOf<Of<"processTable">>;
export type FileEntry = Of<"statFile">;
export type ServerRecord = Of<"serverInfo">;
export type ProfileRecord = NonNullable<Answer<"getProfile">>;
export type BackendRecord = ItemOf<Of<"listBackends">>;
export type InstanceRecord = ItemOf<Of<"listInstances">>;
export type HandoffRecord = Of<"handoffSandbox">;
/** A promotion: the original, and what became of its forks. */
export type PromotionRecord = Of<"promoteSandbox">;
export type Reachability = Of<"reachability">;
/** A port on which a program inside listens. */
export type ListeningPort = ItemOf<Of<"listPorts">>;
/** A URL that opens a port; `expiresAt` is null if the port is public. */
export type PortLink = Of<"createPortLink">;
export type SandboxStats = Of<"sandboxStats">;
export type SandboxUsage = Of<"sandboxUsage">;
export type UsageRecord = ItemOf<Of<"listUsage">>;
export type Expiry = Of<"expireSandboxes">;

/** The settings of a new sandbox; everything has a default. */
export type SandboxSettings = BodyOf<"createSandbox">;
/** The settings of a sandbox that starts from a saved state. */
export type RestoreSettings = BodyOf<"restoreSnapshot">;
export type MoveSettings = BodyOf<"moveSandbox">;
export type ForkSettings = BodyOf<"forkSandbox">;
export type SnapshotSettings = BodyOf<"createSnapshot">;
export type SandboxChange = BodyOf<"updateSandbox">;
export type SnapshotChange = BodyOf<"updateSnapshot">;

export type SandboxFilter = Omit<QueryOf<"listSandboxes">, "cursor">;
export type SnapshotFilter = Omit<QueryOf<"listSnapshots">, "cursor">;
export type OperationFilter = Omit<QueryOf<"listOperations">, "cursor">;
