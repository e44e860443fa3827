export interface ExecCommand {
  readonly key: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly workingFolder?: string;
  /** As in the sandbox's `/etc/passwd`, or numbers: `NAME`, `UID`, `NAME:GROUP`. Absent: the sandbox's user. */
  readonly user?: string;
  readonly pty?: { readonly rows: number; readonly columns: number };
}

/**
 * A process and the log of its output. Both streams share one log; offsets count its bytes. The log is bounded:
 * unacknowledged output blocks the process instead of using more memory.
 */
export interface SandboxProcess {
  readonly key: string;
  readonly pid: number;
  /** The offset up to which output was acknowledged. */
  readonly acknowledged: number;
  /** Settles when the process has exited and all its output is in the log. Rejects if the sandbox ends first. */
  readonly exited: Promise<ProcessExit>;
  /** Undefined while it runs. */
  readonly exit: ProcessExit | undefined;

  /**
   * Output from an offset (default: unacknowledged output), then live, ending after the last byte. One reader at a
   * time; a new one ends the old one when it requests its first chunk. An aborted signal ends it quietly; the end of
   * the sandbox makes it throw. A chunk has whole UTF-8 characters unless the bytes are invalid. An offset whose bytes
   * were dropped starts at the oldest byte.
   */
  output(options?: { readonly from?: number; readonly signal?: AbortSignal }): AsyncIterable<OutputChunk>;
  /** The oldest byte of the log, and the offset after its newest, now. */
  bounds(): Promise<OutputBounds>;
  /** The bytes before `offset` have reached their reader and may be dropped. */
  acknowledge(offset: number): void;
  /**
   * Resolves when the process's pipe has accepted all of it; `wrong_state` if stdin is closed or the process has ended.
   */
  writeStdin(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  /** Does nothing for a process that has exited. */
  signal(signal: number, scope: "process" | "group"): Promise<void>;
  resize(rows: number, columns: number): Promise<void>;
  /** Drops the record and the log of an exited process. */
  release(): Promise<void>;
}

export interface ProcessExit {
  /** Undefined if a signal ended it. */
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
