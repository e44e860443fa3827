import type { Io } from "../src/io.ts";

export interface FakeIo extends Io {
  readonly out: () => string;
  readonly err: () => string;
  /** Sends a signal to the command. */
  readonly signal: (name: string) => void;
  readonly exits: number[];
}

export function fakeIo(env: Record<string, string> = {}): FakeIo {
  let out = "";
  let err = "";
  const listeners = new Set<(signal: string) => void>();
  const exits: number[] = [];
  return {
    stdout: (text) => (out += text),
    stderr: (text) => (err += text),
    interactive: false,
    env,
    homeDirectory: "/home/ada",
    workingDirectory: "/work",
    onStopSignal(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    exit: ((code: number) => exits.push(code)) as unknown as Io["exit"],
    out: () => out,
    err: () => err,
    signal: (name) => listeners.forEach((listener) => listener(name)),
    exits,
  };
}
