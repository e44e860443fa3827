/** What a command may touch of its process; tests give their own. */
export interface Io {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Whether a person watches stderr. */
  readonly interactive: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly workingDirectory: string;
  /** Calls back on SIGTERM and SIGINT, and when the npm that started this is gone; gives the function that stops it. */
  readonly onStopSignal: (listener: (signal: string) => void) => () => void;
  readonly exit: (code: number) => never;
}
