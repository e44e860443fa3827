import { readFileSync } from "node:fs";
import { findKernelPid } from "./sandbox-process-tree.ts";

/**
 * The host process that is gVisor's kernel for one sandbox. Signals must reach only it: its pid may be reused once it
 * has ended, and as a child of runsc, its end is known here only a moment later.
 */
export class KernelProcess {
  readonly pid: number;
  readonly #startTime: string;

  private constructor(pid: number, startTime: string) {
    this.pid = pid;
    this.#startTime = startTime;
  }

  static async find(attachedPid: number): Promise<KernelProcess | undefined> {
    const pid = await findKernelPid(attachedPid);
    const startTime = pid === undefined ? undefined : startTimeOf(pid);
    return pid === undefined || startTime === undefined ? undefined : new KernelProcess(pid, startTime);
  }

  /** False: it has ended. Synchronous, so that nothing can come between a decision and its signal. */
  signal(signal: "SIGSTOP" | "SIGCONT"): boolean {
    if (startTimeOf(this.pid) !== this.#startTime) return false;
    try {
      return process.kill(this.pid, signal);
    } catch {
      return false;
    }
  }
}

/** In ticks since the machine's start: with the pid it identifies a process forever. */
function startTimeOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name comes before the last parenthesis, and may contain anything.
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
