import { randomUUID } from "node:crypto";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { settleSwap } from "./cell-swap.ts";
import {
  deadRecord,
  decodeRecord,
  encodeRecord,
  instanceIdOf,
  instanceKey,
  INSTANCES_FOLDER,
  type LivenessRecord,
  liveRecord,
} from "./liveness-record.ts";
import { LivenessWatch, type Observation } from "./liveness-watch.ts";

/** What ownership asks about other instances. */
export interface Liveness {
  /**
   * Whether an instance is known to be dead. A missing record counts as dead: an instance writes its record before it
   * owns anything, and only records of the dead are ever removed. A tombstone is put in its place first, so that
   * nobody can come to life under that id afterwards.
   */
  isDead(instanceId: string): Promise<boolean>;
  /** The address of a living instance, if it has one. */
  urlOf(instanceId: string): Promise<string | undefined>;
}

export interface InstancesOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly ttlMs: number;
  /** Where other instances and clients reach this one. */
  readonly url: string | null;
  /** Somebody declared this instance dead: nothing that it owned is its own any more. Called at most once. */
  readonly onFenced: (reason: string) => void;
  /** A renewal or a look at the others failed; the next one comes anyway. */
  readonly onError: (error: unknown) => void;
}

const RENEWALS_PER_TTL = 3;
const REMEMBERED_NONCES = 8;

/**
 * This process among the others that use the store: one small record that it keeps changing, and an eye on the records
 * of the others. The id is fresh for each process start and never used again.
 */
export class Instances implements Liveness {
  readonly instanceId: string = randomUUID();
  readonly #options: InstancesOptions;
  readonly #watch = new LivenessWatch();
  readonly #stop = new AbortController();
  /** Dead is for ever, so such a record is read once. */
  readonly #knownDead = new Set<string>();
  /** A renewal that was given up unanswered may be applied later; its nonce shows that it is this process's own. */
  readonly #sentNonces: string[] = [];
  #version: string | undefined;
  #beat = 0;
  #loops: Promise<unknown> = Promise.resolve();

  private constructor(options: InstancesOptions) {
    this.#options = options;
  }

  /** Registers this process; from then on it renews and watches until {@link close}. */
  static async register(options: InstancesOptions): Promise<Instances> {
    const instances = new Instances(options);
    await instances.#renew();
    instances.#loops = Promise.all([
      instances.#repeat(() => instances.#renew()),
      instances.#repeat(() => instances.#lookAround()),
    ]);
    return instances;
  }

  async isDead(instanceId: string): Promise<boolean> {
    const cell = await this.#options.store.readCell(instanceKey(instanceId));
    if (cell !== undefined) return decodeRecord(cell.body)?.dead === true;
    await this.markDead(instanceId);
    return true;
  }

  async urlOf(instanceId: string): Promise<string | undefined> {
    const cell = await this.#options.store.readCell(instanceKey(instanceId));
    const record = cell === undefined ? undefined : decodeRecord(cell.body);
    return record === undefined || record.dead === true ? undefined : (record.url ?? undefined);
  }

  /** Declares an instance dead that is known to be, whatever its record says: the lock of its run directory is free. */
  async markDead(instanceId: string): Promise<void> {
    for (;;) {
      const cell = await this.#options.store.readCell(instanceKey(instanceId));
      if (cell !== undefined && decodeRecord(cell.body)?.dead === true) return;
      const swap = await this.#swap(instanceId, cell?.version, deadRecord(this.instanceId));
      if (swap.outcome === "written") return;
    }
  }

  /** Orderly end: the record says dead at once, so that nobody waits for what this instance may still own. */
  async close(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(new Error("The server is ending."));
    await this.#loops;
    await this.markDead(this.instanceId);
  }

  async #repeat(action: () => Promise<void>): Promise<void> {
    const { clock, ttlMs, onError } = this.#options;
    const { signal } = this.#stop;
    for (;;) {
      await clock.sleep(ttlMs / RENEWALS_PER_TTL, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await action();
      } catch (error) {
        if (!signal.aborted) onError(error);
      }
    }
  }

  async #renew(): Promise<void> {
    const { url, ttlMs } = this.#options;
    for (;;) {
      const record = liveRecord(url, ++this.#beat, ttlMs);
      this.#sentNonces.splice(0, this.#sentNonces.length - REMEMBERED_NONCES + 1);
      this.#sentNonces.push(record.nonce);
      const swap = await this.#swap(this.instanceId, this.#version, record, this.#stop.signal);
      if (swap.outcome === "written") {
        this.#version = swap.present.version;
        return;
      }
      const found = swap.found === undefined ? undefined : decodeRecord(swap.found.body);
      if (found === undefined || !this.#sentNonces.includes(found.nonce)) return this.#fence(found);
      this.#version = swap.found?.version;
    }
  }

  #fence(found: LivenessRecord | undefined): void {
    this.#stop.abort(new Error("This instance was declared dead."));
    const how = found?.dead === true ? `declared dead by ${found.by}` : "replaced in the store";
    this.#options.onFenced(`The instance ${this.instanceId} was ${how}.`);
  }

  async #lookAround(): Promise<void> {
    const expired = this.#watch.observe(await this.#observeOthers(), this.#options.clock.monotonicMs());
    for (const { instanceId, version } of expired) {
      // A conflict means that it has changed after all.
      await this.#swap(instanceId, version, deadRecord(this.instanceId), this.#stop.signal);
    }
  }

  async #observeOthers(): Promise<readonly Observation[]> {
    const { store } = this.#options;
    const observations: Observation[] = [];
    for await (const key of store.listCells(INSTANCES_FOLDER)) {
      const instanceId = instanceIdOf(key);
      if (instanceId === this.instanceId || this.#knownDead.has(instanceId)) continue;
      const cell = await store.readCell(key);
      const record = cell === undefined ? undefined : decodeRecord(cell.body);
      if (cell === undefined || record === undefined) continue;
      if (record.dead === true) this.#knownDead.add(instanceId);
      else observations.push({ instanceId, version: cell.version, ttlMs: record.ttl_ms });
    }
    return observations;
  }

  async #swap(instanceId: string, expected: string | undefined, record: LivenessRecord, signal?: AbortSignal) {
    return await settleSwap(this.#options.store, this.#options.clock, {
      key: instanceKey(instanceId),
      expected,
      body: encodeRecord(record),
      isOurs: (cell) => decodeRecord(cell.body)?.nonce === record.nonce,
      ...(signal === undefined ? {} : { signal }),
    });
  }
}
