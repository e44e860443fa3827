import type { Io, Terminal } from "../../src/io.ts";

export interface FakeIo extends Io {
  readonly out: () => string;
  readonly err: () => string;
  /** Sends a signal to the command. */
  readonly signal: (name: string) => void;
  readonly exits: number[];
}

export interface FakeIoOptions {
  /** Whether a person watches stderr. */
  readonly interactive?: boolean;
  readonly stdoutIsTerminal?: boolean;
  readonly stdin?: AsyncIterable<Uint8Array> | string;
  readonly terminal?: Terminal;
  readonly workingDirectory?: string;
  readonly homeDirectory?: string;
}

export function fakeIo(env: Record<string, string> = {}, options: FakeIoOptions = {}): FakeIo {
  const written = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const text = (bytes: readonly Uint8Array[]): string => Buffer.concat(bytes).toString("utf8");
  const listeners = new Set<(signal: string) => void>();
  const exits: number[] = [];
  return {
    stdout: (added) => written.stdout.push(Buffer.from(added)),
    stderr: (added) => written.stderr.push(Buffer.from(added)),
    writeBytes: async (to, bytes) => {
      written[to].push(Buffer.from(bytes));
      return true;
    },
    interactive: options.interactive ?? false,
    stdoutIsTerminal: options.stdoutIsTerminal ?? false,
    stdin: {
      isTerminal: options.terminal !== undefined,
      async *bytes() {
        const { stdin = "" } = options;
        if (typeof stdin === "string") yield Buffer.from(stdin);
        else yield* stdin;
      },
    },
    terminal: options.terminal,
    env,
    homeDirectory: options.homeDirectory ?? "/home/ada",
    workingDirectory: options.workingDirectory ?? "/somewhere",
    onStopSignal(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    outliveParent: () => {},
    exit: ((code: number) => exits.push(code)) as unknown as Io["exit"],
    out: () => text(written.stdout),
    err: () => text(written.stderr),
    signal: (name) => listeners.forEach((listener) => listener(name)),
    exits,
  };
}
