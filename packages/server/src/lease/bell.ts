import { randomUUID } from "node:crypto";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import type { LeaseRunner } from "./lease-runner.ts";

/** Interval between reads of the own bell, and between rings of a server that still waits. */
const LISTEN_EVERY_TTLS = 1 / 15;
const RING_EVERY_TTLS = 2 / 15;

/**
 * One cell for each server, `bells/{instance_id}.json`, that changes when another server requests one of its sandboxes.
 * Reading it is cheaper than reading every held head. It is an optimisation: correctness does not depend on a ring
 * being noticed.
 */
export class Bell {
  readonly #store: ObjectStore;
  readonly #clock: Clock;
  readonly #runner: LeaseRunner;

  constructor(store: ObjectStore, clock: Clock, runner: LeaseRunner) {
    this.#store = store;
    this.#clock = clock;
    this.#runner = runner;
  }

  /** Reads the own bell until the runner stops. */
  async listen(): Promise<void> {
    let heard = "";
    while (!this.#runner.stopped) {
      await this.#sleep(LISTEN_EVERY_TTLS);
      const { instanceId } = this.#runner.state;
      const version = await this.#version(instanceId);
      const sound = version === undefined ? "" : `${instanceId} ${version}`;
      if (sound !== "" && sound !== heard) this.#runner.tell({ kind: "rung", sandboxId: undefined });
      heard = sound;
    }
  }

  /** Rings until nobody waits any more. */
  ring(instanceId: string, isWaiting: () => boolean): void {
    void (async () => {
      while (isWaiting() && !this.#runner.stopped) {
        await this.#change(instanceId);
        await this.#sleep(RING_EVERY_TTLS);
      }
    })();
  }

  /** A conflict means that another server rang at the same time: the bell is noticed anyway. */
  async #change(instanceId: string): Promise<void> {
    try {
      const cell = await this.#store.readCell(bellKey(instanceId));
      const body = Buffer.from(`${JSON.stringify({ format: 1, nonce: randomUUID() })}\n`);
      await this.#store.swapCell(bellKey(instanceId), cell?.version, body);
    } catch {
      // The next ring may succeed.
    }
  }

  async #version(instanceId: string): Promise<string | undefined> {
    try {
      return (await this.#store.readCell(bellKey(instanceId), { casual: true }))?.version;
    } catch {
      return undefined;
    }
  }

  async #sleep(ttls: number): Promise<void> {
    await this.#clock.sleep(ttls * this.#runner.state.settings.ttlMs, this.#runner.signal).catch(() => {});
  }
}

function bellKey(instanceId: string): string {
  return `bells/${instanceId}.json`;
}
