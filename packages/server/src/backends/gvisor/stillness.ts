import { SerialQueue } from "../../support/serial-queue.ts";
import type { AgentClient } from "../agent/agent-client.ts";
import type { Runsc } from "./runsc.ts";
import type { Doze } from "./doze.ts";

/** The ways in which a sandbox is held still: its agent silent, its processes frozen, and everything inside paused. */
export class Stillness {
  readonly #agent: AgentClient;
  readonly #runsc: Runsc;
  readonly #containerId: string;
  readonly #doze: Doze;
  /** runsc refuses to pause what is paused and to resume what runs, so one step comes after the other. */
  readonly #steps = new SerialQueue();
  /** Its user wants it paused; the rest is what a save needs, and ends with it. */
  #held = false;
  #silent = false;
  #frozen = false;
  /** By runsc, or because it dozed already and is kept so. */
  #paused: "by runsc" | "dozing" | undefined;

  constructor(agent: AgentClient, runsc: Runsc, containerId: string, doze: Doze) {
    this.#agent = agent;
    this.#runsc = runsc;
    this.#containerId = containerId;
    this.#doze = doze;
  }

  /** After this nothing is in the agent's pipes and nobody hears of what goes on inside. */
  silence(): Promise<void> {
    return this.#step(async () => {
      this.#doze.keepAwake();
      // A paused agent cannot fall silent.
      if (this.#paused !== undefined) await this.#resume();
      await this.#agent.quiesce();
      this.#silent = true;
    });
  }

  /** After this nothing inside goes on but the agent, which still answers. */
  freeze(): Promise<void> {
    return this.#step(async () => {
      this.#doze.keepAwake();
      // Nor can a paused one freeze the others or read their files.
      if (this.#paused !== undefined) await this.#resume();
      await this.#agent.freezeProcesses();
      this.#frozen = true;
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

  pause(): Promise<void> {
    return this.#step(() => this.#pause());
  }

  /** Begins to pause without waiting for it. A sandbox that ends meanwhile needs no pause. */
  pauseSoon(): void {
    this.#step(() => this.#pauseAndStop()).catch(() => {});
  }

  /** After the steps that are under way, taken or failed. */
  settled(): Promise<void> {
    return this.#steps.run(async () => {});
  }

  /** Ends what a save needed. A sandbox that is held stays paused. */
  release(): Promise<void> {
    return this.#step(async () => {
      const needsAgent = this.#silent || this.#frozen;
      if (this.#paused !== undefined && (needsAgent || !this.#held)) await this.#resume();
      if (this.#silent) await this.#agent.resume();
      this.#silent = false;
      if (this.#frozen) await this.#agent.thawProcesses();
      this.#frozen = false;
      if (this.#held) await this.#pauseAndStop();
    });
  }

  /** One that is held still in any way must be neither woken nor doze off by what else goes on. */
  #step(work: () => Promise<void>): Promise<void> {
    return this.#steps.run(async () => {
      try {
        await work();
      } finally {
        if (!this.#silent && !this.#frozen && this.#paused === undefined) this.#doze.letBe();
      }
    });
  }

  async #pause(): Promise<void> {
    if (this.#paused !== undefined) return;
    if (this.#doze.keepDozing()) {
      this.#paused = "dozing";
      return;
    }
    this.#doze.keepAwake();
    await this.#command("pause");
    this.#paused = "by runsc";
  }

  /** For a pause in which runsc has nothing to do with it: it could not answer. */
  async #pauseAndStop(): Promise<void> {
    await this.#pause();
    this.#doze.keepStopped();
  }

  async #resume(): Promise<void> {
    this.#doze.keepAwake();
    if (this.#paused === "by runsc") await this.#command("resume");
    this.#paused = undefined;
  }

  /** What fails on a sandbox that has ended fails for that reason. */
  async #command(name: "pause" | "resume"): Promise<void> {
    if (this.#agent.failure !== undefined) throw this.#agent.failure;
    try {
      await this.#runsc.command([name, this.#containerId]);
    } catch (error) {
      throw this.#agent.failure ?? error;
    }
  }
}
