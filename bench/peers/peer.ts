/** The tasks of each peer, and their rows in the report. */
export const TASKS = {
  run: ["run", "run-ahead"],
  exec: ["exec"],
  files: ["commit", "from-commit"],
  memory: ["save", "restore"],
} as const;

export type TaskName = keyof typeof TASKS;
export type RowName = (typeof TASKS)[TaskName][number];

export const ROW_TITLES: Readonly<Record<RowName, string>> = {
  run: "From nothing to the first output of `echo hello`",
  "run-ahead": "The same, where sandboxer has started one ahead",
  exec: "`/bin/true` in one that runs",
  commit: "Save its files (100 MB are new)",
  "from-commit": "A new one from those files, to its first output",
  save: "Save it with its memory (100 MB)",
  restore: "Resume from that, to the first output",
};

/**
 * How a peer does a task: a description of each row's work, and one run, in milliseconds by row. A peer without a warm
 * pool has the value of `run` in both rows.
 */
export interface Work {
  readonly what: Readonly<Partial<Record<RowName, string>>>;
  once(): Promise<Partial<Record<RowName, number>>>;
}

/** A participant that does the same work as sandboxer. */
export interface Peer {
  readonly name: string;
  /** A text says why it cannot. */
  readonly work: Readonly<Record<TaskName, Work | string>>;
}

export const SAY_HELLO: readonly string[] = ["bash", "-c", "echo hello"];

/** The sizes of files and memory. */
export const FILE_MEGABYTES = 100;
export const HEAP_MEGABYTES = 100;

/** Leaves this many new bytes in a file that commits keep. */
export const WRITE_FILE: readonly string[] = [
  "sh",
  "-c",
  `head -c ${FILE_MEGABYTES}000000 /dev/urandom > /workspace/data && sync /workspace/data 2> /dev/null; true`,
];

/** Prints the size of that file. */
export const SAY_FILE: readonly string[] = ["stat", "-c", "%s", "/workspace/data"];
export const FILE_SAID = `${FILE_MEGABYTES}000000`;

/** Holds the memory, and prints a line every 5 ms from then on. */
export const HOLD_AND_TICK: readonly string[] = [
  "python3",
  "-u",
  "-c",
  `import os, time
heap = [os.urandom(1000000) for _ in range(${HEAP_MEGABYTES})]
while True:
  print("tick")
  time.sleep(0.005)`,
];
