/** What a command may touch of its process; tests give their own. */
export interface Io {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when whoever reads has taken them; with false when nobody reads any more. */
  readonly writeBytes: (to: "stdout" | "stderr", bytes: Uint8Array) => Promise<boolean>;
  /** Whether a person watches stderr. */
  readonly interactive: boolean;
  /** Whether a person watches stdout. */
  readonly stdoutIsTerminal: boolean;
  readonly stdin: Stdin;
  /** Where stdin and stdout are the same person's terminal. */
  readonly terminal: Terminal | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly workingDirectory: string;
  /**
   * Calls back on SIGTERM and SIGINT, and when the npm that started this is gone; with `hangUp` on SIGHUP too, which
   * otherwise ends this process. Gives the function that stops it.
   */
  readonly onStopSignal: (listener: (signal: string) => void, options?: { readonly hangUp?: boolean }) => () => void;
  /** From here on the death of the process that started this changes nothing. */
  readonly outliveParent: () => void;
  readonly exit: (code: number) => never;
}

export interface Stdin {
  readonly isTerminal: boolean;
  /** To be read once. Leaving the loop lets the process end. */
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
   * Keys come as they are pressed, Ctrl-C too. Gives the function that ends it; it also ends with the process, however
   * that ends, and before `onSignal` is told of a signal that asks us to end. A second signal ends us at once.
   */
  enterRawMode(onSignal: (signal: string) => void): () => void;
}
