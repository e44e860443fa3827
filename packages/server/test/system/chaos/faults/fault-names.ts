/** Every fault by the name that `--faults` and `--without` take. */
export const FAULTS = {
  kill: "kill -9 of a server",
  stop: "SIGSTOP of a server beyond its lease, then SIGCONT",
  term: "SIGTERM to a server",
  group: "SIGTERM to the process group of a server, several times",
  roll: "every server in turn is told to end and is replaced",
  drain: "one of the last three while something is wrong with the store",
  cut: "one server cannot reach the store, beyond its lease",
  down: "nobody can reach the store",
  slow: "the store answers slowly",
  hang: "the store does not answer, and does what it was asked when it is back",
  lost: "the store's answers get lost",
  full: "the store has no room",
  vanish: "the store is an empty folder, or its bucket is missing",
  clock: "the wall clock of a server jumps",
  abort: "clients do not wait for the answer",
} as const;

export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];
