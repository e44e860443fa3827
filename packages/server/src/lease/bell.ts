import { randomUUID } from "node:crypto";
import { isSandboxId } from "@sandboxer/protocol";
import { z } from "zod";
import type { Cell, ObjectStore, SwapOutcome } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { jsonOf } from "../support/json.ts";
import type { LeaseRunner } from "./lease-runner.ts";

/** Interval between reads of the own bell, and between rings of a server that still waits. */
const LISTEN_EVERY_TTLS = 1 / 15;
const RING_EVERY_TTLS = 2 / 15;
/** The longest pause after the first conflict; it doubles with each further one. */
const PAUSE_TTLS = 1 / 1_500;
const MOST_ATTEMPTS = 8;
/** How many requested sandboxes a bell names. A server that still waits rings again. */
const MOST_WANTED = 64;

const bellSchema = z.looseObject({ format: z.literal(1), wanted: z.array(z.string().refine(isSandboxId)).optional() });

/**
 * One cell for each server, `bells/{instance_id}.json`, that changes when another server requests one of its sandboxes,
 * and names those that were requested last. Reading it is cheaper than reading every held head. It is an optimisation:
 * correctness does not depend on a ring being noticed.
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
      const cell = await this.#read(instanceId);
      const sound = cell === undefined ? "" : `${instanceId} ${cell.version}`;
      if (cell !== undefined && sound !== heard) {
        const wanted = wantedIn(cell.body);
        // A server of an earlier release does not say what it requests: any of them.
        for (const sandboxId of wanted ?? [undefined]) this.#runner.tell({ kind: "rung", sandboxId });
        // Heard, so that later rings can say again what they request. If it fails, they ask for everything.
        if (wanted === undefined) await this.#write(instanceId, cell, []).catch(() => {});
      }
      heard = sound;
    }
  }

  /** Rings until nobody waits any more. */
  ring(instanceId: string, sandboxId: string, isWaiting: () => boolean): void {
    void (async () => {
      while (isWaiting() && !this.#runner.stopped) {
        await this.#change(instanceId, sandboxId);
        await this.#sleep(RING_EVERY_TTLS);
      }
    })();
  }

  /** A conflict means that another server rang at the same time, for another sandbox: this one is not named yet. */
  async #change(instanceId: string, sandboxId: string): Promise<void> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS && !this.#runner.stopped; attempt++) {
      try {
        const cell = await this.#store.readCell(bellKey(instanceId));
        const earlier = cell === undefined ? [] : wantedIn(cell.body);
        // A ring that asks for everything is not heard yet: this one asks for everything too.
        const wanted = earlier && [...new Set([sandboxId, ...earlier])].slice(0, MOST_WANTED);
        if ((await this.#write(instanceId, cell, wanted)).outcome === "written") return;
      } catch {
        // The next ring may succeed.
        return;
      }
      await this.#sleep(Math.random() * PAUSE_TTLS * 2 ** attempt);
    }
  }

  async #write(
    instanceId: string,
    before: Cell | undefined,
    wanted: readonly string[] | undefined,
  ): Promise<SwapOutcome> {
    const body = Buffer.from(`${JSON.stringify({ format: 1, nonce: randomUUID(), wanted })}\n`);
    return await this.#store.swapCell(bellKey(instanceId), before?.version, body);
  }

  async #read(instanceId: string): Promise<Cell | undefined> {
    try {
      return await this.#store.readCell(bellKey(instanceId), { casual: true });
    } catch {
      return undefined;
    }
  }

  async #sleep(ttls: number): Promise<void> {
    await this.#clock.sleep(ttls * this.#runner.state.settings.ttlMs, this.#runner.signal).catch(() => {});
  }
}

/** Undefined if it does not say. */
function wantedIn(body: Uint8Array): readonly string[] | undefined {
  return bellSchema.safeParse(jsonOf(body)).data?.wanted;
}

function bellKey(instanceId: string): string {
  return `bells/${instanceId}.json`;
}
