import type { CallOptions } from "../support/call-options.ts";
import type { AcquireRequest, ForgetOptions, Resources } from "./contract/sandbox-request.ts";
import type { SandboxHandle } from "./contract/sandbox-handle.ts";
import type { SnapshotPayload, PreparedState } from "./contract/saved-state.ts";

export type * from "./contract/sandbox-request.ts";
export type * from "./contract/sandbox-handle.ts";
export type * from "./contract/sandbox-process.ts";
export type * from "./contract/sandbox-files.ts";
export type * from "./contract/saved-state.ts";

/**
 * One provider of sandboxes: how to make, run, save and load one. A backend knows nothing of stores, leases or clients,
 * reads no environment, and hands out no type of its vendor.
 *
 * Every backend passes `test/backends/backend-contract.ts`; what its capabilities deny is skipped there by name.
 */
export interface SandboxBackend {
  readonly name: string;
  readonly capabilities: Capabilities;
  /**
   * The kinds of snapshots that `acquireFromSnapshot` takes, whoever made them; absent: only what it made itself. Portable
   * captures of a workspace are not among them: the manager unpacks those into a fresh sandbox.
   */
  readonly loads?: readonly string[];
  /** Its filesystem snapshots are portable captures: their member `workspace.tar.gz` is the workspace. */
  readonly capturesWorkspace?: boolean;
  /** What sandboxes have that ask for nothing; absent: it does not say. */
  readonly defaultResources?: Resources | undefined;
  /** The folder of its sandboxes that a portable capture holds; absent: `/workspace`. */
  readonly workspaceFolder?: string | undefined;

  /** What a portable capture can bring along beside the files themselves; absent: nothing. */
  readonly keeps?: FileExtras;

  /** Whether sandboxes can be made here and now. Never throws. */
  probe(): Promise<Health>;

  /** A fresh sandbox. On failure nothing is left behind. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<SandboxHandle>;

  /**
   * The sandbox with the same key and spec hash, when it is still there: reattached, or started if it was stopped. What
   * has the key and another spec hash, was stopped for longer than the idle time, or does not answer is removed; of
   * several that fit, the newest stays. Without an identity: the one with the same sandbox id, for backends whose
   * sandboxes outlive the server.
   */
  tryResume(request: AcquireRequest, options?: CallOptions): Promise<SandboxHandle | undefined>;

  /**
   * A sandbox with the state of the snapshot. What cannot be loaded here (kind, engine, platform, root filesystem) is
   * refused as `image_incompatible` or `not_supported` before any side effect.
   */
  acquireFromSnapshot(
    request: AcquireRequest,
    snapshot: SnapshotPayload,
    options?: CallOptions,
  ): Promise<SandboxHandle>;

  /**
   * Removes what a snapshot of this backend refers to outside of its members; the members are not there. Absent: there is
   * nothing. What is gone already is fine; an error says what stays.
   */
  forgetSnapshot?(snapshot: SnapshotPayload, options?: ForgetOptions): Promise<void>;

  /** What a sandbox as requested would cost, without making it. Absent, or undefined: it does not say. */
  estimateCost?(request: AcquireRequest): Promise<CostEstimate | undefined>;

  /**
   * A sandbox with a saved state that was loaded ahead of the need; undefined: there is none, so the state has to be
   * loaded. That it was asked for is remembered. Absent: no state is ever loaded ahead.
   */
  takePrepared?(
    request: AcquireRequest,
    state: PreparedState,
    options?: CallOptions,
  ): Promise<SandboxHandle | undefined>;

  /** The state is removed: what was loaded of it goes too. */
  forgetPrepared?(stateId: string): void;

  /** The sandboxes that are started ahead of the need; absent: there are never any. They are nobody's, and not counted. */
  readonly warm?: WarmFigures | undefined;

  /** Starts no more sandboxes ahead of the need, and ends those that are there: the server shuts down. */
  stopPreparing?(): Promise<void>;

  /** Ends what this process started and still runs. */
  close(): Promise<void>;
}

export interface WarmFigures {
  /** How many there may be at most; 0: none are wanted. */
  readonly max: number;
  readonly ready: number;
  readonly preparing: number;
  /** Requests that got one, and those that found none, since the start. */
  readonly handedOut: number;
  readonly missed: number;
  /** Those that could not be made, or were of no use. */
  readonly failed: number;
  /** Those that nobody wanted in time. */
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
  /** CPU, memory, process and disk limits hold. */
  readonly limits: boolean;
  /** It runs on machines of the operator's own. */
  readonly selfHosted: boolean;
  /** Its sandboxes live on when the server ends; `tryResume` finds them again by their id. */
  readonly outlivesServer: boolean;
}

export interface FileExtras {
  /** Names that stand for one file still do: its files say `links` and have `makeHardLink`. */
  readonly hardLinks: boolean;
  /** Those of the user (`user.*`): its files have `attributes` and `setAttribute`. */
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
