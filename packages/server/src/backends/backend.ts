import type { CallOptions } from "../support/call-options.ts";

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
  readonly loads?: readonly SnapshotKind[];
  /** Its filesystem snapshots are portable captures: their member `workspace.tar.gz` is the workspace. */
  readonly capturesWorkspace?: boolean;
  /** What sandboxes have that ask for nothing; absent: it does not say. */
  readonly defaultResources?: Resources;
  /** The folder of its sandboxes that a portable capture holds; absent: `/workspace`. */
  readonly workspaceFolder?: string;

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

/** A saved state that several sandboxes may begin with. */
export interface PreparedState {
  /** What has the same id is the same. */
  readonly id: string;
  /** Of what it is made of, as its record says. */
  readonly sizeBytes: number;
  /** Puts it into an empty folder, also long after the request. Throws when it is gone. */
  load(folder: string, options: CallOptions): Promise<SnapshotPayload>;
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

export interface AcquireRequest {
  /** Identifies the sandbox to its user for ever; the backend may give each incarnation a name of its own. */
  readonly sandboxId: string;
  readonly spec: SandboxSpec;
  /** By what others find it again; a backend whose sandboxes outlive the server marks them with it. */
  readonly identity?: SandboxIdentity;
  /** Who asks. What is prepared because of one who asked is never given to another. Absent: nobody says. */
  readonly tenant?: string;
  /** For the server's own ends: nothing is taken that was started ahead for users, and nothing is because of it. */
  readonly apart?: boolean;
}

export interface SandboxIdentity {
  /** Chosen by its user: the same key asks for the same sandbox. */
  readonly key: string;
  /** Of the spec, see `spec-hash.ts`: another one asks for another sandbox. */
  readonly specHash: string;
  /** The installation that made it: only its own sandboxes may a server take for orphans. */
  readonly owner: string;
  /** One that was stopped for longer than this counts as gone. */
  readonly idleTtlMs: number;
}

export interface ForgetOptions extends CallOptions {
  /** Where the captured sandbox lived, as its profile said. */
  readonly placement?: Readonly<Record<string, string>>;
}

/** What a sandbox is made of; stored with it, so that a restore asks for the same. */
export interface SandboxSpec {
  /** `host`, `dir:/path`, `tar:/path`, `docker:NAME`, `oci:PATH:TAG`; absent: the backend's default. */
  readonly image?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly resources: Resources;
  readonly network: "none" | "sandbox";
  /** Variables, and the names of the secrets that they hold. A backend never sees it: it gets the values, in `env`. */
  readonly secretRefs?: Readonly<Record<string, string>>;
  /** What its user hands to the backend by name, such as `repo`. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Where it is to live, as the profile says: the host, the base folder, the region. */
  readonly placement?: Readonly<Record<string, string>>;
  /** Commands to run once, after it was made and before it is given out. */
  readonly setup?: readonly string[];
}

export interface Resources {
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly processes?: number;
  readonly diskBytes?: number;
  readonly fileBytes?: number;
}

/** A running sandbox. Calls on one that has ended fail with `sandbox_failed`. */
export interface SandboxHandle {
  readonly sandboxId: string;
  /** Settles once, when the sandbox has ended, whether asked for or not. Never rejects. */
  readonly ended: Promise<SandboxEnd>;
  /**
   * It takes no processor: it is paused, or nothing runs inside and it waits to be asked for something. Absent: it always
   * takes some.
   */
  readonly dozing?: boolean;

  /**
   * Starts a process. A key that is known gives the process that has it and starts nothing. A program or working folder
   * that is not there is `file_not_found`.
   */
  exec(command: ExecCommand, options?: CallOptions): Promise<SandboxProcess>;
  /** The processes that were started with `exec` and not released, oldest first; also those from before a restore. */
  processes(): Promise<readonly SandboxProcess[]>;
  /** Every process inside, whoever started it, but the agent. */
  processTable(): Promise<readonly ProcessTableEntry[]>;
  readonly files: SandboxFiles;
  /** All files, for portable captures; absent: `files` has to do, with the rights of the user and names in UTF-8. */
  readonly rawFiles?: RawFiles;
  /** Does something while nothing inside goes on but what answers for files; absent: files may change meanwhile. */
  whileFrozen?<Result>(work: () => Promise<Result>): Promise<Result>;
  /** A byte stream to a port on the loopback interface inside; `backend_unavailable` when nobody listens. */
  connect(port: number): Promise<SandboxConnection>;

  /**
   * Saves the sandbox into the empty folder `into`. With `leaveRunning` it goes on at once; without, it stays frozen
   * until `resume()` (the save was not wanted after all) or `destroy()`. When saving fails, the sandbox goes on.
   */
  snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload>;

  /**
   * Nothing inside goes on until `resume()`. Both are idempotent. Calls that need something inside wait meanwhile;
   * `snapshot`, `stats`, `stop` and `destroy` do not, and a snapshot leaves a paused sandbox paused.
   */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Answers when the sandbox itself answers. */
  ping(options?: CallOptions): Promise<void>;
  stats(): Promise<SandboxStats>;
  /** Ends it, keeping what `tryResume` needs, where the backend can. */
  stop(): Promise<void>;
  /** Ends it and removes everything of it. Idempotent. */
  destroy(): Promise<void>;
}

export interface SandboxEnd {
  readonly reason: "destroyed" | "crashed" | "out_of_memory";
  readonly message: string;
}

export interface SandboxStats {
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly cpuMs: number;
}

export interface ExecCommand {
  readonly key: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly workingFolder?: string;
  readonly pty?: { readonly rows: number; readonly columns: number };
}

/**
 * A process and the log of its output. Both streams share one log; offsets count its bytes. The log is bounded: what
 * nobody acknowledges makes the process block, not the memory grow.
 */
export interface SandboxProcess {
  readonly key: string;
  readonly pid: number;
  /** Up to here the output was acknowledged. */
  readonly acknowledged: number;
  /** Settles when the process has exited and all its output is in the log. Rejects when the sandbox ends first. */
  readonly exited: Promise<ProcessExit>;
  /** Undefined while it runs. */
  readonly exit: ProcessExit | undefined;

  /**
   * Output from an offset (default: what is not acknowledged), then live, ending after the last byte. One reader at a
   * time; a new one ends the old one when it asks for its first chunk. An aborted signal ends it quietly; the end of the
   * sandbox makes it throw. A chunk holds whole UTF-8 characters unless the bytes are none. An offset whose
   * bytes are gone starts at the oldest byte that is there.
   */
  output(options?: { readonly from?: number; readonly signal?: AbortSignal }): AsyncIterable<OutputChunk>;
  /** The oldest byte of the log, and the offset after its newest, now. */
  bounds(): Promise<OutputBounds>;
  /** The bytes before `offset` have reached their reader and may go. */
  acknowledge(offset: number): void;
  /** Resolves when the process's pipe has taken all of it; `wrong_state` when stdin is closed or the process gone. */
  writeStdin(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  /** To a process that has exited: nothing happens. */
  signal(signal: number, scope: "process" | "group"): Promise<void>;
  resize(rows: number, columns: number): Promise<void>;
  /** Drops the record and the log of an exited process. */
  release(): Promise<void>;
}

export interface ProcessExit {
  /** Undefined when a signal ended it. */
  readonly code: number | undefined;
  readonly signal: number | undefined;
  /** The offset after the last byte of output. */
  readonly outputEnd: number;
}

export interface OutputBounds {
  readonly start: number;
  readonly end: number;
}

export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  /** Offset of the first byte. */
  readonly offset: number;
  readonly data: Uint8Array;
}

export interface ProcessTableEntry {
  readonly pid: number;
  readonly parentPid: number;
  readonly uid: number;
  readonly state: string;
  readonly residentBytes: number;
  readonly cpuMs: number;
  readonly command: string;
}

export interface FileEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "symlink" | "other";
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly linkTarget: string | undefined;
  /** Names with the same device and inode stand for one file, which has so many; absent: the backend cannot say. */
  readonly device?: bigint;
  readonly inode?: bigint;
  readonly links?: number;
}

/** Files inside, with the rights of the sandbox's user. Absolute paths. */
export interface SandboxFiles {
  stat(path: string): Promise<FileEntry>;
  list(path: string): Promise<readonly FileEntry[]>;
  read(path: string, options?: { readonly offset?: number; readonly length?: number }): AsyncIterable<Uint8Array>;
  /**
   * Replaces the content. Parent folders must exist. The mode counts when the file is made. With `holes`, zeros need not
   * take room where the backend can leave them out.
   */
  write(
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: { readonly mode?: number; readonly holes?: boolean },
  ): Promise<void>;
  makeFolder(path: string, options?: { readonly parents?: boolean }): Promise<void>;
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** A link with that text, which need not lead anywhere. Something that has the name already is an error. */
  makeSymlink(target: string, path: string): Promise<void>;
  /** Another name for a file that is there. Absent, or `not_supported`: there are none. */
  makeHardLink?(existing: string, path: string): Promise<void>;
  /** Does not follow a link: of one, only the time can be set. */
  set(path: string, attributes: { readonly mode?: number; readonly modifiedNs?: bigint }): Promise<void>;
}

/** Files with the rights of root. Each character of a name, a path or a link's target is one byte (latin1). */
export interface RawFiles extends SandboxFiles {
  /**
   * The extended attributes of the user (`user.*`), whose names are bytes too. Absent, or `not_supported`: nobody can
   * say; `too_large`: more than can be told.
   */
  attributes?(path: string): Promise<ReadonlyMap<string, Uint8Array>>;
  setAttribute?(path: string, name: string, value: Uint8Array): Promise<void>;
  set(
    path: string,
    attributes: {
      readonly mode?: number;
      readonly modifiedNs?: bigint;
      readonly owner?: { readonly uid: number; readonly gid: number };
    },
  ): Promise<void>;
}

export interface SandboxConnection {
  readonly data: AsyncIterable<Uint8Array>;
  write(data: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface SnapshotOptions extends CallOptions {
  readonly mode: "full" | "filesystem";
  readonly leaveRunning: boolean;
  /** Told when it goes on: for how long nothing inside did. A backend that does not know tells nothing. */
  readonly onStill?: (ms: number) => void;
}

/** A saved state: its kind, what it needs to be loaded, and its files, which lie in a folder of this machine. */
export interface SnapshotPayload {
  readonly kind: SnapshotKind;
  readonly members: readonly SnapshotMember[];
  /** Compared by the backend before it loads the snapshot. JSON. */
  readonly requirements: Readonly<Record<string, unknown>>;
}

export type SnapshotKind =
  | "gvisor-checkpoint"
  | "docker-image-tar"
  | "docker-checkpoint"
  | "workspace-tar"
  | "daytona-snapshot"
  | "stub-metadata"
  | "fake-state";

export interface SnapshotMember {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
}
