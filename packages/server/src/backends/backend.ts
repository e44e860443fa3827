import type { CallOptions } from "../support/call-options.ts";
import type { MachineFacts, StateNeeds } from "./contract/machine.ts";
import type { AcquireRequest, ForgetOptions, Resources } from "./contract/sandbox-request.ts";
import type { SandboxHandle } from "./contract/sandbox-handle.ts";
import type { SnapshotPayload, PreparedState } from "./contract/saved-state.ts";

export type * from "./contract/sandbox-request.ts";
export type * from "./contract/sandbox-handle.ts";
export type * from "./contract/machine.ts";
export type * from "./contract/network-guard.ts";
export type * from "./contract/sandbox-process.ts";
export type * from "./contract/sandbox-files.ts";
export type * from "./contract/saved-state.ts";

/**
 * A provider of sandboxes: how to create, run, save and load one. A backend does not know stores, leases or clients,
 * reads no environment, and exposes no type of its vendor.
 *
 * Every backend passes the contract suite in `test/backends/contract`; unsupported capabilities are skipped by name.
 */
export interface SandboxBackend {
  readonly name: string;
  readonly capabilities: Capabilities;
  /**
   * The kinds of snapshots that `acquireFromSnapshot` accepts, from any backend; absent: only its own. Portable
   * captures of a workspace are not among them: the manager unpacks those into a fresh sandbox.
   */
  readonly loads?: readonly string[];
  /** Whether its filesystem snapshots are portable captures: their member `workspace.tar.gz` is the workspace. */
  readonly capturesWorkspace?: boolean;
  /** The default resources of its sandboxes; absent: unknown. */
  readonly defaultResources?: Resources | undefined;
  /** The folder of a portable capture; absent: `/workspace`. */
  readonly workspaceFolder?: string | undefined;

  /** File attributes that a portable capture can keep; absent: none. */
  readonly keeps?: FileExtras;

  /** Whether sandboxes can be created now. Never throws. */
  probe(): Promise<Health>;

  /** Creates a fresh sandbox. On failure nothing is left behind. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<SandboxHandle>;

  /**
   * Finds the existing sandbox with the same key and spec hash: reattached, or started if it was stopped. Sandboxes
   * with the key and another spec hash, that were stopped for longer than the idle time, or that do not answer, are
   * removed; of several that match, the newest is kept. Without an identity: the one with the same sandbox id, for
   * backends whose sandboxes outlive the server.
   */
  tryResume(request: AcquireRequest, options?: CallOptions): Promise<SandboxHandle | undefined>;

  /**
   * Creates a sandbox from the snapshot. A snapshot that cannot be loaded here (kind, engine, platform, root
   * filesystem) is refused as `image_incompatible` or `not_supported` before any side effect.
   */
  acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options?: CallOptions,
  ): Promise<SandboxHandle>;

  /** The requirements of its saved states; absent: any machine can load them. */
  needsOf?(snapshot: Pick<SnapshotPayload, "kind" | "requirements">): StateNeeds;

  /** The properties of this machine that its saved states depend on; absent: unknown. */
  readonly machine?: MachineFacts | undefined;

  /**
   * Removes what a snapshot of this backend references outside its members; the members are already removed. Absent:
   * there is nothing. Already removed data is fine; an error says what is left.
   */
  forgetSnapshot?(snapshot: SnapshotPayload, options?: ForgetOptions): Promise<void>;

  /** The price of a sandbox as requested, without creating it. Absent, or undefined: unknown. */
  estimateCost?(request: AcquireRequest): Promise<CostEstimate | undefined>;

  /**
   * A pooled sandbox with a preloaded saved state; undefined: there is none, so the state must be loaded. The request
   * is remembered. Absent: no state is ever preloaded.
   */
  takePrepared?(
    request: AcquireRequest,
    state: PreparedState,
    options?: CallOptions,
  ): Promise<SandboxHandle | undefined>;

  /** The state is removed, and its preloaded copies too. */
  forgetPrepared?(stateId: string): void;

  /** The engines of this machine that it uses; absent: it has none of its own. */
  readonly engines?: readonly EngineFacts[] | undefined;

  /** The warm pool; absent: there is none. Its sandboxes belong to nobody, and are not counted. */
  readonly warm?: WarmFigures | undefined;

  /** Ends the warm pool: the server shuts down. */
  stopPreparing?(): Promise<void>;

  /** Ends everything that this process started and still runs. */
  close(): Promise<void>;
}

/** An engine that lies on this machine, or is being fetched. */
export interface EngineFacts {
  readonly version: string;
  /** Undefined if it was not tested yet. */
  readonly platform: string | undefined;
  /** Whether the server drives its sandboxes by messages or by commands. Undefined if it was not tested yet. */
  readonly control: "messages" | "commands" | undefined;
  /** Where it was found, or how it was made. */
  readonly source: string;
  /**
   * `default`: of new sandboxes. `used`: an image needed it. `installed`: nothing has needed it. `fetching`, `failed`:
   * being fetched or built, or that failed. `ready`: the default after a restart.
   */
  readonly state: "default" | "used" | "installed" | "fetching" | "ready" | "failed";
  readonly message: string | undefined;
}

export interface WarmFigures {
  /** The maximum size; 0: none. */
  readonly max: number;
  readonly ready: number;
  readonly preparing: number;
  /** Requests that got a pooled sandbox, and those that found none, since the start. */
  readonly handedOut: number;
  readonly missed: number;
  /** Sandboxes that failed to start or were unusable. */
  readonly failed: number;
  /** Sandboxes that expired unused. */
  readonly expired: number;
}

export interface Capabilities {
  /** `full`: files, memory and processes. `filesystem`: files. `metadata`: a record only. */
  readonly snapshot: "full" | "filesystem" | "metadata" | "none";
  readonly filesystemSnapshot: boolean;
  readonly pty: boolean;
  readonly files: boolean;
  readonly connect: boolean;
  readonly network: boolean;
  /** Whether CPU, memory, process and disk limits are enforced. */
  readonly limits: boolean;
  /** Whether programs can run as any user inside; absent: only as one. */
  readonly users?: boolean;
  /** Whether that user may be root; absent: no. */
  readonly root?: boolean;
  /** Whether it runs on the operator's own machines. */
  readonly selfHosted: boolean;
  /** Whether its sandboxes outlive the server; `tryResume` finds them again by their id. */
  readonly outlivesServer: boolean;
}

export interface FileExtras {
  /** Hard links: its files report `links` and have `makeHardLink`. */
  readonly hardLinks: boolean;
  /** User attributes (`user.*`): its files have `attributes` and `setAttribute`. */
  readonly extendedAttributes: boolean;
}

export interface CostEstimate {
  readonly perHour: number;
  /** ISO 4217, such as EUR. Estimates in different currencies are not compared. */
  readonly currency: string;
}

export interface Health {
  readonly ok: boolean;
  /** One line for people: what runs, or why nothing can. */
  readonly summary: string;
  readonly remedy?: string;
  readonly details?: Readonly<Record<string, string>>;
}
