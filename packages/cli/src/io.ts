/** The parts of the process that a command may use; tests provide their own. */
export interface Io {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when the reader has accepted them; with false if nobody reads any more. */
  readonly writeBytes: (to: "stdout" | "stderr", bytes: Uint8Array) => Promise<boolean>;
  /** Whether stderr is a terminal. */
  readonly interactive: boolean;
  /** Whether stdout is a terminal. */
  readonly stdoutIsTerminal: boolean;
  readonly stdin: Stdin;
  /** If stdin and stdout are the same terminal. */
  readonly terminal: Terminal | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly workingDirectory: string;
  /**
   * Calls back on SIGTERM and SIGINT, and when the npm that started this has exited; with `hangUp` on SIGHUP too, which
   * otherwise ends this process. Returns a function that stops it.
   */
  readonly onStopSignal: (listener: (signal: string) => void, options?: { readonly hangUp?: boolean }) => () => void;
  /** From here on the death of the parent process changes nothing. */
  readonly outliveParent: () => void;
  readonly exit: (code: number) => never;
}

export interface Stdin {
  readonly isTerminal: boolean;
  /** Can be read once. Leaving the loop lets the process end. */
  bytes(): AsyncIterable<Uint8Array>;
}

export interface TerminalSize {
  readonly rows: number;
  readonly columns: number;
}

export interface Terminal {
  size(): TerminalSize;
  onResize(listener: () => void): () => void;
  /**
   * Keys arrive as they are pressed, including Ctrl-C. Returns a function that ends it; it also ends with the process,
   * in any case, and before `onSignal` is called for a termination signal. A second signal ends the process at once.
   */
  enterRawMode(onSignal: (signal: string) => void): () => void;
}
