import { SerialQueue } from "../../support/serial-queue.ts";
import type { AgentClient } from "../agent/agent-client.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";

/** Who wants a container to stand still: its user, or a save. The engine refuses to pause what is paused. */
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

  /** Goes on, unless it is held: the save that it stood still for was not wanted after all. */
  release(): Promise<void> {
    return this.#steps.run(async () => {
      if (!this.#held) await this.#unpause();
    });
  }

  /** Does something while it stands still. It stays so if that went well and `stay` is true; one that is held, always. */
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

  /** Does something while only the agent goes on, which answers for files. Afterwards it is as it was. */
  whileFrozen<Result>(agent: AgentClient, work: () => Promise<Result>): Promise<Result> {
    return this.#steps.run(async () => {
      const wasPaused = this.#paused;
      await this.#unpause();
      try {
        await agent.freezeProcesses();
        return await work();
      } finally {
        // Of one that has ended meanwhile there is nothing to let go.
        await agent.thawProcesses().catch(() => {});
        if (wasPaused) await this.#pause().catch(() => {});
      }
    });
  }

  /** Whether a container that is to be ended stands still now. */
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
