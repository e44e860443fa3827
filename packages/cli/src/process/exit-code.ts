import { constants } from "node:os";

export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

const UNKNOWN_END = 255;

/** As in shells: the program's own exit code, or 128 plus the number of the signal that ended it. */
export function exitCodeOf({ exitCode, signal }: ProcessEnd): number {
  if (exitCode !== null) return exitCode & 0xff;
  const number = signal === null ? undefined : signalNumber(signal);
  return number === undefined ? UNKNOWN_END : 128 + number;
}

function signalNumber(signal: string): number | undefined {
  const name = signal.startsWith("SIG") ? signal : `SIG${signal}`;
  return (constants.signals as Readonly<Record<string, number>>)[name];
}
