import type { Readable, Writable } from "node:stream";
import type { AcquireRequest, CostEstimate, ExecCommand, Health, SandboxEnd, SnapshotMember } from "../backend.ts";
import type { Progress } from "../../support/call-options.ts";

/**
 * The contract of extensions: three hooks make a provider of sandboxes, and every further hook adds a capability. A call
 * without a hook fails with `not_supported` before anything happens. `ExtensionBackend` turns an extension into a
 * backend; docs/reference/extensions.md has a complete example.
 *
 * A hook reports a failure by throwing, best a SandboxerError; anything else becomes `backend_unavailable`.
 */
export interface SandboxExtension {
  /** The name of the backend: lower case letters, digits and dashes. */
  readonly name: string;

  /** Creates a fresh sandbox. On failure nothing is left behind. */
  provision(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle>;
  /** Waits until the sandbox can be used. If it throws, the adapter calls `teardown`. */
  waitReady(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;
  /** Ends the sandbox and removes all of it. Idempotent: for a missing sandbox there is nothing to remove. */
  teardown(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;

  /** Whether sandboxes can be created now. */
  probe?(): Promise<Health>;
  /** Finds the existing sandbox with this id and spec. With it, sandboxes outlive the server. */
  find?(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle | undefined>;
  /** Settles when the sandbox has ended by itself. The signal says that nobody waits any more. */
  waitEnd?(handle: ExtensionHandle, tools: ExtensionTools): Promise<SandboxEnd>;

  /** `workspace-tar`: files are saved. `stub-metadata`, the default: only a record. */
  readonly snapshotKind?: ExtensionSnapshotKind;
  supportsSnapshots?(): boolean;
  /** Saves the sandbox, which keeps running. The result is stored, and passed to `restoreFromSnapshot`. */
  snapshot?(handle: ExtensionHandle, request: SnapshotRequest, tools: ExtensionTools): Promise<ExtensionRecord>;
  /** Creates a new sandbox from the snapshot. On failure nothing is left behind. */
  restoreFromSnapshot?(
    request: AcquireRequest,
    snapshot: ExtensionSnapshot,
    tools: ExtensionTools,
  ): Promise<ExtensionHandle>;

  /**
   * Removes what a snapshot left outside its members, when the snapshot is deleted; the placement is that of the
   * captured sandbox. Already removed data is fine. An error says what is left: nobody asks again.
   */
  forgetSnapshot?(
    record: ExtensionRecord,
    placement: Readonly<Record<string, string>>,
    tools: ExtensionTools,
  ): Promise<void>;

  /** The price of a sandbox as requested; called before it is created, so it must have no effects. */
  estimateCost?(request: AcquireRequest): Promise<CostEstimate>;

  /** Starts a process inside. A missing program or working folder is `file_not_found`. */
  exec?(handle: ExtensionHandle, command: ExtensionCommand, tools: ExtensionTools): Promise<ExtensionProcess>;
  /**
   * Whether `exec` finds a POSIX `sh` with the usual tools inside (cat, mkdir, mv, rm, stat, tail, head): files, the
   * process table and memory statistics then use it.
   */
  readonly shell?: boolean;
  /** Whether sandboxes may request network access. */
  readonly network?: boolean;
  /** Whether it runs on the operator's own machines. */
  readonly selfHosted?: boolean;
  /** Nothing inside runs until `resume`. Both are idempotent. */
  pause?(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;
  resume?(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;
  /** Ends what runs and keeps what `find` needs. */
  stop?(handle: ExtensionHandle, tools: ExtensionTools): Promise<void>;

  /** The server ends: closes connections; sandboxes that `find` finds again are not touched. */
  close?(): Promise<void>;
}

/** Plain strings, so that they can be stored as JSON and found again after a restart. */
export type ExtensionRecord = Readonly<Record<string, string>>;

/** How an extension finds its sandbox: host, folder, project. */
export type ExtensionHandle = ExtensionRecord;

export type ExtensionSnapshotKind = "workspace-tar" | "stub-metadata";

export interface ExtensionTools {
  /** The caller cancelled. The hook must undo its work, and throw. */
  readonly signal: AbortSignal;
  progress(progress: Progress): void;
}

export interface SnapshotRequest {
  /** An empty folder of this machine. Every file in it becomes a member of the snapshot, and goes where snapshots go. */
  readonly into: string;
  /** The id of the snapshot, for what is kept elsewhere. */
  readonly snapshotId: string;
  /** The sandbox is already paused, by the user or the adapter, and must stay so. */
  readonly paused: boolean;
}

export interface ExtensionSnapshot {
  /** The result of `snapshot`. It went through a store: check it like any input. */
  readonly record: ExtensionRecord;
  readonly members: readonly SnapshotMember[];
}

/** A command with the sandbox's environment merged in. Terminals are refused before. */
export type ExtensionCommand = Required<Pick<ExecCommand, "argv" | "env">> & Pick<ExecCommand, "workingFolder">;

/** A running process. Unread streams must make it block; a Node child process works. */
export interface ExtensionProcess {
  /** Its pid inside the sandbox. */
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Rejects if its result is unknown, as after a lost connection. */
  readonly exited: Promise<{ readonly code: number | undefined; readonly signal: number | undefined }>;
  signal(signal: number, scope: "process" | "group"): Promise<void>;
  /**
   * Settles when it has ended, without its output being read; called when output waits for room, and again when it
   * rejects. For providers where the unread output of an ended process blocks others, or is lost: the rest of it, which
   * is finite, is then read.
   */
  untilEnded?(signal: AbortSignal): Promise<void>;
  /** Releases it: nobody reads any more. The process itself may run until the sandbox ends. */
  abandon(): void;
}
