import { SerialQueue } from "../../support/serial-queue.ts";
import type { AgentClient } from "../agent/agent-client.ts";
import type { EngineControl } from "./control/engine-control.ts";
import type { Doze } from "./doze.ts";

/** Most captured sandboxes have ended by then. */
const QUIET_MS = 10_000;

/** The ways in which a sandbox is frozen: its agent silent, its processes frozen, and everything inside paused. */
export class Stillness {
  readonly #agent: AgentClient;
  readonly #control: Pick<EngineControl, "pause" | "resume">;
  readonly #doze: Doze;
  /** runsc refuses to pause a paused sandbox, and gVisor's kernel counts pauses: steps run one after the other. */
  readonly #steps = new SerialQueue();
  /** Its user wants it paused; the rest is what a save needs, and ends with it. */
  #held = false;
  #silent = false;
  #frozen = false;
  /** Paused by the engine, or because it dozed already and is kept so. */
  #paused: "by engine" | "dozing" | undefined;
  #pauseTimer: NodeJS.Timeout | undefined;

  constructor(agent: AgentClient, control: Pick<EngineControl, "pause" | "resume">, doze: Doze) {
    this.#agent = agent;
    this.#control = control;
    this.#doze = doze;
  }

  /**
   * Captures everything while the agent's pipes are empty and nobody sees activity inside, until {@link release};
   * returns when that began. One step together with its preparation: a concurrent hold would stop the kernel that the
   * capture waits for. Anything that could be observed otherwise is `paused` before.
   */
  capture(work: () => Promise<void>, { paused }: { readonly paused: boolean }): Promise<number> {
    return this.#step(async () => {
      await this.#meetAgent();
      await this.#agent.quiesce();
      this.#silent = true;
      const silentMs = performance.now();
      if (paused || this.#held) await this.#pause();
      await work();
      if (this.#held) await this.#pauseAndStop();
      return silentMs;
    });
  }

  /** Runs work while only the agent runs inside, which still answers. It stays so until {@link release}. */
  whileFrozen<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#step(async () => {
      await this.#meetAgent();
      await this.#agent.freezeProcesses();
      this.#frozen = true;
      return work();
    });
  }

  /** Paused until {@link letGo}, whatever is saved meanwhile. */
  hold(): Promise<void> {
    this.#held = true;
    return this.#step(() => this.#pauseAndStop());
  }

  letGo(): Promise<void> {
    this.#held = false;
    return this.release();
  }

  /**
   * Pauses a captured sandbox that nobody waits for. If nothing seems to run inside, gVisor's kernel is only stopped,
   * which costs nothing: most end a moment later. A pause by a runsc command takes half as much CPU as the
   * capture; but a process that makes no system calls, unknown to the server, runs until then.
   */
  pauseSoon(): void {
    const pause = async (): Promise<void> => {
      if (!this.#silent || this.#paused === "by engine") return;
      await this.#resume();
      await this.#pauseAndStop();
    };
    const pauseLater = (): void => {
      this.#pauseTimer = setTimeout(() => void this.#step(pause).catch(() => {}), QUIET_MS);
      this.#pauseTimer.unref();
    };
    // In its turn: nobody would answer from a kernel that is stopped in the middle of another step.
    void this.#step(async () => {
      if (!this.#agent.busy && this.#stopKernel()) pauseLater();
      else await pause();
    }).catch(() => {});
  }

  /** The sandbox has ended. */
  end(): void {
    clearTimeout(this.#pauseTimer);
  }

  /** After the steps in progress, whether they succeed or fail. */
  settled(): Promise<void> {
    return this.#steps.run(async () => {});
  }

  /**
   * Ends what a save needed. A held one stays paused, and its agent as it is until {@link letGo}: to continue the
   * agent, everything inside would have to run for a moment.
   */
  release(): Promise<void> {
    return this.#step(() => (this.#held ? this.#pauseAndStop() : this.#goOn()));
  }

  /** A frozen sandbox must neither be woken nor doze off by other activity. */
  #step<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#steps.run(async () => {
      try {
        return await work();
      } finally {
        if (!this.#silent && !this.#frozen && this.#paused === undefined) this.#doze.letBe();
      }
    });
  }

  /** A paused agent can neither fall silent nor freeze the others; nor can one that is silent since an earlier save. */
  async #meetAgent(): Promise<void> {
    this.#doze.keepAwake();
    await this.#goOn();
  }

  async #goOn(): Promise<void> {
    if (this.#paused !== undefined) await this.#resume();
    if (this.#silent) await this.#agent.resume();
    this.#silent = false;
    if (this.#frozen) await this.#agent.thawProcesses();
    this.#frozen = false;
  }

  async #pause(): Promise<void> {
    if (this.#paused !== undefined) return;
    if (this.#doze.keepDozing()) {
      this.#paused = "dozing";
      return;
    }
    this.#doze.keepAwake();
    await this.#command("pause");
    this.#paused = "by engine";
  }

  /** For a pause without the engine: it could not answer. */
  async #pauseAndStop(): Promise<void> {
    await this.#pause();
    this.#doze.keepStopped();
  }

  /** False if the kernel process is unknown, or may not be stopped. */
  #stopKernel(): boolean {
    this.#doze.keepStopped();
    if (this.#doze.dozing) this.#paused ??= "dozing";
    return this.#doze.dozing;
  }

  async #resume(): Promise<void> {
    this.#doze.keepAwake();
    if (this.#paused === "by engine") await this.#command("resume");
    this.#paused = undefined;
  }

  /** Failures on a sandbox that has ended report that reason. */
  async #command(name: "pause" | "resume"): Promise<void> {
    if (this.#agent.failure !== undefined) throw this.#agent.failure;
    try {
      await this.#control[name]();
    } catch (error) {
      throw this.#agent.failure ?? error;
    }
  }
}
