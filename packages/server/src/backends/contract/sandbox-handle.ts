import type { NetworkPolicy } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import type { NetworkGuard } from "./network-guard.ts";
import type { ExecCommand, SandboxProcess, ProcessTableEntry } from "./sandbox-process.ts";
import type { SandboxFiles, RawFiles } from "./sandbox-files.ts";
import type { SnapshotOptions, SnapshotPayload } from "./saved-state.ts";

/** A running sandbox. Calls on one that has ended fail with `sandbox_failed`. */
export interface SandboxHandle {
  readonly sandboxId: string;
  /** Settles once, when the sandbox has ended, whether requested or not. Never rejects. */
  readonly ended: Promise<SandboxEnd>;
  /** The version of the engine that runs it; absent: unknown. */
  readonly engine?: string;
  /** It uses no CPU: it is paused, or nothing runs inside and it waits for a request. Absent: always false. */
  readonly dozing?: boolean;
  /** The entrypoint and command of its image; absent: it has none, or the backend starts them itself. */
  readonly imageCommand?: readonly string[] | undefined;

  /**
   * Starts a process. A known key returns its process and starts nothing. A missing program or working folder is
   * `file_not_found`.
   */
  exec(command: ExecCommand, options?: CallOptions): Promise<SandboxProcess>;
  /**
   * The processes that were started with `exec` and not released, oldest first; including those from before a restore.
   */
  processes(): Promise<readonly SandboxProcess[]>;
  /** Every process inside except the agent. */
  processTable(): Promise<readonly ProcessTableEntry[]>;
  readonly files: SandboxFiles;
  /** All files, for portable captures; absent: `files` is used, with the rights of the user and names in UTF-8. */
  readonly rawFiles?: RawFiles;
  /** Files with the rights of root and names in UTF-8, with attributes and owners; absent: there is no such access. */
  readonly rootFiles?: RawFiles;
  /** Its users and groups, read now; absent: unknown. */
  accounts?(): Promise<SandboxAccounts>;
  /** The folder of a portable capture; absent: the backend's. */
  workspaceFolder?(): Promise<string>;
  /** Runs work while nothing inside runs except what serves files; absent: files may change meanwhile. */
  whileFrozen?<Result>(work: () => Promise<Result>): Promise<Result>;
  /** A byte stream to a port on the loopback interface inside; `backend_unavailable` if nothing listens. */
  connect(port: number): Promise<SandboxConnection>;
  /** The TCP ports on which programs inside listen, in ascending order; absent: unknown. */
  listeningPorts?(): Promise<readonly ListeningPort[]>;
  /**
   * Opens a port on the loopback interface inside and returns its number; 0 chooses one. `onConnection` gets the
   * connections to it. A repeated call for the same number returns the open port, also in a restored or resumed
   * sandbox: its programs may know the number, and it accepts nothing before the call. Errors: `wrong_state` if a
   * program has the port, `not_supported` if the sandbox's agent is too old. Absent: not supported.
   */
  listen?(port: number, onConnection: (connection: SandboxConnection) => void): Promise<number>;

  /**
   * Its backend connects it to the network and applies its policy. Absent: it has no network, and programs inside reach
   * the outside through `listen` and the server's proxy.
   */
  readonly ownNetwork?: boolean;
  /**
   * With a network of its own: applies a policy to new and open connections. Called first before programs need the
   * network; until then nothing gets through. Absent: the backend applies the policy of the request for good.
   */
  setNetwork?(policy: NetworkPolicy, guard: NetworkGuard): Promise<void>;

  /**
   * Saves the sandbox into the empty folder `into`. With `leaveRunning` it continues at once; without, it stays frozen
   * until `thaw()` (the save was not needed) or `destroy()`. If saving fails, the sandbox continues.
   */
  snapshot(into: string, options: SnapshotOptions): Promise<SnapshotPayload>;

  /**
   * Nothing inside runs until `thaw()`. Both are idempotent. Calls that need something inside wait meanwhile;
   * `snapshot`, `stats`, `stop` and `destroy` do not, and a snapshot leaves a frozen sandbox frozen.
   */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Answers when the sandbox itself answers. */
  ping(options?: CallOptions): Promise<void>;
  stats(): Promise<SandboxStats>;
  /** Ends it, keeping what `tryResume` needs, if the backend can. */
  stop(): Promise<void>;
  /** Ends it and removes all of it. Idempotent. */
  destroy(): Promise<void>;
  /**
   * Releases it: its provider keeps it as it is, running or not, because another server owns it now. For backends whose
   * sandboxes outlive the server. Later calls fail. Idempotent.
   */
  letGo?(): void;
}

export interface SandboxAccount {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** The users and groups inside. Code inside writes these names. */
export interface SandboxAccounts {
  /** The sandbox's own user. */
  readonly own: SandboxAccount;
  /** `bad_request`: there is none; `permission_denied`: the server does not allow root. */
  find(user: string): SandboxAccount;
  userName(uid: number): string | undefined;
  groupName(gid: number): string | undefined;
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

export interface ListeningPort {
  readonly port: number;
  /** As text, such as `0.0.0.0` or `::1`. */
  readonly address: string;
  /** The process that listens; absent: unknown. */
  readonly process?: { readonly pid: number; readonly command: string };
}

export interface SandboxConnection {
  readonly data: AsyncIterable<Uint8Array>;
  write(data: Uint8Array): Promise<void>;
  /** Nothing more will be written; the other side may still send. Absent: only `close` ends it. */
  end?(): Promise<void>;
  close(): Promise<void>;
}
