import { SerialQueue } from "../../support/serial-queue.ts";
import type { AgentClient } from "../agent/agent-client.ts";
import type { Runsc } from "./runsc.ts";

/** The ways in which a sandbox is held still: its agent silent, its processes frozen, and everything inside paused. */
export class Stillness {
  readonly #agent: AgentClient;
  readonly #runsc: Runsc;
  readonly #containerId: string;
  /** runsc refuses to pause what is paused and to resume what runs, so one step comes after the other. */
  readonly #steps = new SerialQueue();
  /** Its user wants it paused; the rest is what a save needs, and ends with it. */
  #held = false;
  #silent = false;
  #frozen = false;
  #paused = false;

  constructor(agent: AgentClient, runsc: Runsc, containerId: string) {
    this.#agent = agent;
    this.#runsc = runsc;
    this.#containerId = containerId;
  }

  /** After this nothing is in the agent's pipes and nobody hears of what goes on inside. */
  silence(): Promise<void> {
    return this.#steps.run(async () => {
      // A paused agent cannot fall silent.
      if (this.#paused) await this.#resume();
      await this.#agent.quiesce();
      this.#silent = true;
    });
  }

  /** After this nothing inside goes on but the agent, which still answers. */
  freeze(): Promise<void> {
    return this.#steps.run(async () => {
      // Nor can a paused one freeze the others or read their files.
      if (this.#paused) await this.#resume();
      await this.#agent.freezeProcesses();
      this.#frozen = true;
    });
  }

  /** Paused until {@link letGo}, whatever is saved meanwhile. */
  hold(): Promise<void> {
    this.#held = true;
    return this.pause();
  }

  letGo(): Promise<void> {
    this.#held = false;
    return this.release();
  }

  pause(): Promise<void> {
    return this.#steps.run(() => this.#pause());
  }

  /** Begins to pause without waiting for it. A sandbox that ends meanwhile needs no pause. */
  pauseSoon(): void {
    this.pause().catch(() => {});
  }

  /** After the steps that are under way, taken or failed. */
  settled(): Promise<void> {
    return this.#steps.run(async () => {});
  }

  /** Ends what a save needed. A sandbox that is held stays paused. */
  release(): Promise<void> {
    return this.#steps.run(async () => {
      const needsAgent = this.#silent || this.#frozen;
      if (this.#paused && (needsAgent || !this.#held)) await this.#resume();
      if (this.#silent) await this.#agent.resume();
      this.#silent = false;
      if (this.#frozen) await this.#agent.thawProcesses();
      this.#frozen = false;
      if (this.#held) await this.#pause();
    });
  }

  async #pause(): Promise<void> {
    if (this.#paused) return;
    await this.#command("pause");
    this.#paused = true;
  }

  async #resume(): Promise<void> {
    await this.#command("resume");
    this.#paused = false;
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
