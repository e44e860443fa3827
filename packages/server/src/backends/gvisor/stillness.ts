import type { AgentClient } from "../agent/agent-client.ts";
import type { Runsc } from "./runsc.ts";

/** The two ways in which a sandbox is held still: its agent silent, and everything inside paused. */
export class Stillness {
  readonly #agent: AgentClient;
  readonly #runsc: Runsc;
  readonly #containerId: string;
  #silent = false;
  /** Whether it took. */
  #paused: Promise<boolean> | undefined;

  constructor(agent: AgentClient, runsc: Runsc, containerId: string) {
    this.#agent = agent;
    this.#runsc = runsc;
    this.#containerId = containerId;
  }

  /** After this nothing is in the agent's pipes and nobody hears of what goes on inside. */
  async silence(): Promise<void> {
    await this.#agent.quiesce();
    this.#silent = true;
  }

  async pause(): Promise<void> {
    const pausing = this.#runsc.command(["pause", this.#containerId]);
    this.#paused ??= pausing.then(
      () => true,
      () => false,
    );
    await pausing;
  }

  /** Begins to pause without waiting for it. A sandbox that ends meanwhile needs no pause. */
  pauseSoon(): void {
    if (this.#paused === undefined) this.pause().catch(() => {});
  }

  async release(): Promise<void> {
    if (await this.#paused) await this.#runsc.command(["resume", this.#containerId]);
    this.#paused = undefined;
    if (this.#silent) await this.#agent.resume();
    this.#silent = false;
  }
}
