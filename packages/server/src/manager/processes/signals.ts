import { SandboxerError } from "@sandboxer/protocol";

/** Linux signals, as inside the sandbox, whatever this server runs on. The index is the number. */
const NAMES =
  "- HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(
    " ",
  );
const ALIASES: Readonly<Record<string, string>> = { IOT: "ABRT", POLL: "IO", CLD: "CHLD", UNUSED: "SYS" };

export const SIGINT = 2;
export const SIGTERM = 15;
export const SIGKILL = 9;

export function signalNumber(signal: string | number): number {
  if (typeof signal === "number") return signal;
  const short = signal.replace(/^SIG/, "");
  const number = NAMES.indexOf(ALIASES[short] ?? short);
  if (number > 0) return number;
  throw new SandboxerError("bad_request", `There is no signal ${signal.slice(0, 20)}.`, {
    hint: "Use a name such as SIGTERM, or a number from 1 to 64.",
  });
}

export function signalName(number: number | undefined): string | null {
  if (number === undefined) return null;
  const name = NAMES[number];
  return name === undefined || number === 0 ? `SIG${number}` : `SIG${name}`;
}
