import type { Readable, Writable } from "node:stream";
import type { AcquireRequest, CostEstimate, ExecCommand, Health, SandboxEnd, SnapshotMember } from "../backend.ts";
import type { Progress } from "../../support/call-options.ts";

/**
 * The contract of extensions: three hooks make a provider of sandboxes, every further hook adds an ability. What has no
 * hook is `not_supported` before anything happens. `ExtensionBackend` makes a backend of an extension; docs/reference/extensions.md
 * has a whole example.
 *
 * A hook reports a failure by throwing, best a SandboxerError; anything else becomes `backend_unavailable`.
 */
export interface SandboxExtension {
  /** The name of the backend: lower case letters, digits and dashes. */
  readonly name: string;

  /** A fresh sandbox. On failure nothing is left behind. */
  provision(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle>;
  /** Until the sandbox can be used. When it throws, the adapter calls `teardown`. */
  waitReady(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;
  /** Ends the sandbox and removes everything of it. Idempotent: of a sandbox that is gone there is nothing to remove. */
  teardown(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;

  /** Whether sandboxes can be made here and now. */
  probe?(): Promise<Health>;
  /** The sandbox with this id and spec, when it is still there. With it, sandboxes outlive the server. */
  find?(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle | undefined>;
  /** Settles when the sandbox has ended by itself. The signal says that nobody waits any more. */
  waitEnd?(handle: ExtensionHandle, tools: ExtensionTools): Promise<SandboxEnd>;

  /** `workspace-tar`: files are saved. `stub-metadata`, the default: a record only. */
  readonly snapshotKind?: ExtensionSnapshotKind;
  supportsSnapshots?(): boolean;
  /** Saves the sandbox, which lives on. What it gives is stored, and handed to `restoreFromSnapshot`. */
  snapshot?(handle: ExtensionHandle, request: SnapshotRequest, tools: ExtensionTools): Promise<ExtensionRecord>;
  /** A new sandbox with the state of the snapshot. On failure nothing is left behind. */
  restoreFromSnapshot?(
    request: AcquireRequest,
    snapshot: ExtensionSnapshot,
    tools: ExtensionTools,
  ): Promise<ExtensionHandle>;

  /**
   * Removes what a snapshot left outside of its members, when the snapshot is deleted; the placement is that of the
   * captured sandbox. What is gone already is fine. An error says what stays: nobody asks again.
   */
  forgetSnapshot?(
    record: ExtensionRecord,
    placement: Readonly<Record<string, string>>,
    tools: ExtensionTools,
  ): Promise<void>;

  /** What a sandbox as requested would cost; asked before it is made, so it has no effects. */
  estimateCost?(request: AcquireRequest): Promise<CostEstimate>;

  /** Starts a process inside. A program or working folder that is not there is `file_not_found`. */
  exec?(handle: ExtensionHandle, command: ExtensionCommand, tools: ExtensionTools): Promise<ExtensionProcess>;
  /**
   * `exec` finds a POSIX `sh` with the usual tools inside (cat, mkdir, mv, rm, stat, tail, head): files, the process
   * table and numbers on memory then come through it.
   */
  readonly shell?: boolean;
  /** Whether sandboxes may ask for a network. */
  readonly network?: boolean;
  /** It runs on machines of the operator's own. */
  readonly selfHosted?: boolean;
  /** Nothing inside goes on until `resume`. Both are idempotent. */
  pause?(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;
  resume?(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;
  /** Ends what runs and keeps what `find` needs. */
  stop?(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;

  /** The server ends: connections are closed, sandboxes that `find` finds again are left alone. */
  close?(): Promise<void>;
}

/** Plain strings, so that they can be stored as JSON and found again after a restart. */
export type ExtensionRecord = Readonly<Record<string, string>>;

/** How an extension finds its sandbox: host, folder, project. */
export type ExtensionHandle = ExtensionRecord;

export type ExtensionSnapshotKind = "workspace-tar" | "stub-metadata";

export interface ExtensionTools {
  /** The caller does not want it any more. A hook then undoes what it did, and throws. */
  readonly signal: AbortSignal;
  progress(progress: Progress): void;
}

export interface SnapshotRequest {
  /** An empty folder of this machine. Every file in it becomes a member of the snapshot, and goes where snapshots go. */
  readonly into: string;
  /** Under which it will be known, for what is kept of it elsewhere. */
  readonly snapshotId: string;
  /** The sandbox is paused already, by the user's wish or the adapter's, and must be so afterwards. */
  readonly paused: boolean;
}

export interface ExtensionSnapshot {
  /** What `snapshot` gave. It went through a store: check it as you would any input. */
  readonly record: ExtensionRecord;
  readonly members: readonly SnapshotMember[];
}

/** A command with the sandbox's environment merged in. Terminals are refused before. */
export type ExtensionCommand = Required<Pick<ExecCommand, "argv" | "env">> & Pick<ExecCommand, "workingFolder">;

/** A running process. Streams that are not read must make it block; a Node child process will do. */
export interface ExtensionProcess {
  /** Its number inside the sandbox. */
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Rejects when what became of it cannot be known, as after the loss of a connection. */
  readonly exited: Promise<{ readonly code: number | undefined; readonly signal: number | undefined }>;
  signal(signal: number, scope: "process" | "group"): Promise<void>;
  /**
   * Settles when it has ended, without its output being read; called once that waits for room, and again when it rejects.
   * For providers where the unread output of a process that has ended holds up others, or is lost: what is left of it,
   * which is finite, is then taken out of the way.
   */
  untilEnded?(signal: AbortSignal): Promise<void>;
  /** Lets go of it: nobody reads any more. The process itself may live on until the sandbox ends. */
  abandon(): void;
}
