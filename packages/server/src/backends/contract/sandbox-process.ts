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
