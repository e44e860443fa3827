import { spawn, type ChildProcess } from "node:child_process";

/** Reads commands, and runs them all when its input ends; as a session of its own it survives a kill of the runner. */
const SCRIPT = `trap '' TERM INT HUP; all=''; while read -r line; do all="$all
$line"; done; eval "$all"`;

/** Cleans up when the runner of a chaos run ends, however that ends: kill -9 leaves neither servers nor mounts. */
export class Watchdog {
  readonly #shell: ChildProcess = spawn("sh", ["-c", SCRIPT], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });

  constructor() {
    this.#shell.unref();
    (this.#shell.stdin as unknown as { unref(): void } | null)?.unref();
  }

  killsGroup(pid: number): void {
    this.atEnd(`kill -9 -${pid} 2>/dev/null`);
  }

  /** A line of shell. The last added line runs last. */
  atEnd(command: string): void {
    this.#shell.stdin?.write(`${command}\n`);
  }
}
