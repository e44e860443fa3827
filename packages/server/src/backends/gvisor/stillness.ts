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
      if (this.#paused) await this.#command("resume");
      this.#paused = false;
      await this.#agent.quiesce();
      this.#silent = true;
    });
  }

  /** After this nothing inside goes on but the agent, which still answers. */
  freeze(): Promise<void> {
    return this.#steps.run(async () => {
      await this.#agent.freezeProcesses();
      this.#frozen = true;
    });
  }

  pause(): Promise<void> {
    return this.#steps.run(async () => {
      if (this.#paused) return;
      await this.#command("pause");
      this.#paused = true;
    });
  }

  /** Begins to pause without waiting for it. A sandbox that ends meanwhile needs no pause. */
  pauseSoon(): void {
    this.pause().catch(() => {});
  }

  /** After the steps that are under way, taken or failed. */
  settled(): Promise<void> {
    return this.#steps.run(async () => {});
  }

  release(): Promise<void> {
    return this.#steps.run(async () => {
      if (this.#paused) await this.#command("resume");
      this.#paused = false;
      if (this.#silent) await this.#agent.resume();
      this.#silent = false;
      if (this.#frozen) await this.#agent.thawProcesses();
      this.#frozen = false;
    });
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
