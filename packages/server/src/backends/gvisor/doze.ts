import type { AgentClient } from "../agent/agent-client.ts";
import type { KernelProcess } from "./kernel-process.ts";

/** Processes unknown to the server, such as a daemon, are checked ever more rarely. */
const LONGEST_MS = 60_000;
/** The agent of a busy machine may be slow to answer. */
const PATIENCE_MS = 10_000;

export interface DozeOptions {
  readonly agent: Pick<AgentClient, "usedMs" | "busy" | "processTable" | "goOnBeating" | "stopBeating">;
  /** After this long without a request; 0: never. */
  readonly afterMs: number;
  readonly onChange: (dozing: boolean) => void;
}

/**
 * Lets a sandbox doze in which only the agent runs: the process of gVisor's kernel is stopped, because an idle one uses
 * 2 to 5 % of a CPU on runsc 20240729. The agent only ever answers, so nobody can tell, as long as it is woken before
 * each frame. SIGSTOP and not a freezer: processes frozen by cgroup v1 cannot be killed, and a sandbox must end with
 * its server.
 */
export class Doze {
  readonly #options: DozeOptions;
  #kernel: Pick<KernelProcess, "signal"> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #begun = false;
  #dozing = false;
  #ended = false;
  #wasBeating = false;
  /** Whether a caller keeps the sandbox awake or dozing; absent: it may doze off and be woken. */
  #kept: "awake" | "dozing" | undefined;
  #nextLookMs: number;

  constructor(options: DozeOptions) {
    this.#options = options;
    this.#nextLookMs = options.afterMs;
  }

  get dozing(): boolean {
    return this.#dozing;
  }

  /** Nothing is stopped before this, or if sandboxes never doze. */
  meet(kernel: Pick<KernelProcess, "signal">): void {
    if (this.#options.afterMs > 0) this.#kernel = kernel;
  }

  /** From now on it may doze off by itself. */
  begin(): void {
    this.#begun = true;
    this.#lookAfter(this.#options.afterMs);
  }

  /** The sandbox has ended. */
  end(): void {
    this.#ended = true;
    this.#kernel = undefined;
    clearTimeout(this.#timer);
  }

  /** Call it before each frame. A sandbox that is kept dozing gets the frame later. */
  wake(): void {
    if (this.#ended || !this.#dozing || this.#kept === "dozing") return;
    this.#dozing = false;
    this.#kernel?.signal("SIGCONT");
    const { agent, afterMs, onChange } = this.#options;
    if (this.#wasBeating) agent.goOnBeating();
    onChange(false);
    this.#lookAfter(afterMs);
  }

  /** Wakes it, and keeps it awake until {@link letBe}. */
  keepAwake(): void {
    this.#kept = "awake";
    this.wake();
  }

  /** Keeps a dozing one dozing until {@link keepAwake} or {@link letBe}, whatever is sent to it. False: it is awake. */
  keepDozing(): boolean {
    if (this.#dozing) this.#kept = "dozing";
    return this.#dozing;
  }

  /** For a paused sandbox: gVisor's kernel uses as much CPU then as at any other time. */
  keepStopped(): void {
    if (!this.#dozing) this.#stop();
    this.keepDozing();
  }

  letBe(): void {
    // Something may have been sent to it meanwhile.
    const wasDozing = this.#kept === "dozing";
    this.#kept = undefined;
    if (wasDozing) this.wake();
    else if (!this.#dozing) this.#lookAfter(this.#options.afterMs);
  }

  #lookAfter(ms: number): void {
    if (this.#kernel === undefined || !this.#begun) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const { agent, afterMs } = this.#options;
    if (this.#kept !== undefined) return;
    const { usedMs } = agent;
    const leftMs = usedMs + afterMs - performance.now();
    if (leftMs > 0 || agent.busy) {
      this.#nextLookMs = afterMs;
      return this.#lookAfter(leftMs > 0 ? leftMs : afterMs);
    }
    const empty = await agent.processTable({ unasked: true, timeoutMs: PATIENCE_MS }).then(
      (table) => table.length === 0,
      () => false,
    );
    if (this.#kept !== undefined) return;
    // Nothing may have been sent since: a frame in flight would find it dozing.
    const unused = agent.usedMs === usedMs && !agent.busy;
    if (unused && empty) return this.#stop();
    this.#nextLookMs = unused ? Math.min(this.#nextLookMs * 2, LONGEST_MS) : afterMs;
    this.#lookAfter(this.#nextLookMs);
  }

  #stop(): void {
    if (this.#kernel?.signal("SIGSTOP") !== true) return;
    this.#dozing = true;
    this.#nextLookMs = this.#options.afterMs;
    // A dozing sandbox does nothing that would matter if its server died.
    this.#wasBeating = this.#options.agent.stopBeating();
    this.#options.onChange(true);
  }
}
