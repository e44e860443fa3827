import { SerialQueue } from "../../support/serial-queue.ts";
import type { AgentClient } from "../agent/agent-client.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";

/** The two reasons to pause a container: its user asked for it, or a save needs it. The engine refuses to pause a paused one. */
export class Stillness {
  readonly #engine: DockerEngine;
  readonly #id: string;
  readonly #steps = new SerialQueue();
  #held = false;
  #paused = false;

  constructor(engine: DockerEngine, id: string) {
    this.#engine = engine;
    this.#id = id;
  }

  /** Paused until {@link letGo}, whatever is saved meanwhile. */
  hold(): Promise<void> {
    return this.#steps.run(async () => {
      await this.#pause();
      this.#held = true;
    });
  }

  letGo(): Promise<void> {
    return this.#steps.run(async () => {
      this.#held = false;
      await this.#unpause();
    });
  }

  /** Continues, unless it is held: the save was not needed after all. */
  release(): Promise<void> {
    return this.#steps.run(async () => {
      if (!this.#held) await this.#unpause();
    });
  }

  /** Runs work while it is paused. It stays paused if that succeeded and `stay` is true; a held one always does. */
  during<Result>(work: () => Promise<Result>, { stay }: { readonly stay: boolean }): Promise<Result> {
    return this.#steps.run(async () => {
      await this.#pause();
      try {
        const result = await work();
        if (!stay && !this.#held) await this.#unpause();
        return result;
      } catch (error) {
        if (!this.#held) await this.#unpause().catch(() => {});
        throw error;
      }
    });
  }

  /** Runs work while only the agent runs, which serves files. Afterwards it is as before. */
  whileFrozen<Result>(agent: AgentClient, work: () => Promise<Result>): Promise<Result> {
    return this.#steps.run(async () => {
      const wasPaused = this.#paused;
      await this.#unpause();
      try {
        await agent.freezeProcesses();
        return await work();
      } finally {
        // A container that has ended meanwhile need not be continued.
        await agent.thawProcesses().catch(() => {});
        if (wasPaused) await this.#pause().catch(() => {});
      }
    });
  }

  /** Whether a container that is about to end is paused now. */
  get isStill(): boolean {
    return this.#paused;
  }

  async #pause(): Promise<void> {
    if (this.#paused) return;
    await this.#engine.pause(this.#id);
    this.#paused = true;
  }

  async #unpause(): Promise<void> {
    if (!this.#paused) return;
    await this.#engine.unpause(this.#id);
    this.#paused = false;
  }
}
