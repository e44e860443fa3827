import type { CallOptions } from "../../support/call-options.ts";
import type { ExecCommand, SandboxProcess, ProcessTableEntry } from "./sandbox-process.ts";
import type { SandboxFiles, RawFiles } from "./sandbox-files.ts";
import type { SnapshotOptions, SnapshotPayload } from "./saved-state.ts";

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
   * until `thaw()` (the save was not wanted after all) or `destroy()`. When saving fails, the sandbox goes on.
   */
  snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload>;

  /**
   * Nothing inside goes on until `thaw()`. Both are idempotent. Calls that need something inside wait meanwhile;
   * `snapshot`, `stats`, `stop` and `destroy` do not, and a snapshot leaves a frozen sandbox frozen.
   */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Answers when the sandbox itself answers. */
  ping(options?: CallOptions): Promise<void>;
  stats(): Promise<SandboxStats>;
  /** Ends it, keeping what `tryResume` needs, where the backend can. */
  stop(): Promise<void>;
  /** Ends it and removes everything of it. Idempotent. */
  destroy(): Promise<void>;
  /**
   * This process is done with it, and what its provider has stays as it is, running or not: another server has it now. For
   * backends whose sandboxes outlive the server. Calls on it fail from then on. Idempotent.
   */
  letGo?(): void;
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

export interface SandboxConnection {
  readonly data: AsyncIterable<Uint8Array>;
  write(data: Uint8Array): Promise<void>;
  close(): Promise<void>;
}
