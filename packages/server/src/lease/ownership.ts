import type { CheckpointReference, Head } from "@sandboxer/protocol";
import type { HeadDetails, NewHome, NewSandbox, Replacement } from "./head.ts";
import type { Instances } from "./instances.ts";
import { SandboxIndex, type IndexFile } from "./sandbox-index.ts";
import { readHead } from "./stored-head.ts";
import { listStoredSandboxes, readStoredSandbox, type StoredSandbox } from "./stored-sandboxes.ts";

interface MoveOptions {
  /** The caller stops waiting. An operation in progress is completed, and released if it was a claim. */
  readonly signal?: AbortSignal;
}

export interface OwnershipOptions {
  /** Local storage for knowledge about the store between two starts. */
  readonly indexFile?: IndexFile;
  /** Whether an instance was a process of this machine that has ended. Its lease need not be awaited. */
  readonly isGone?: (instanceId: string) => Promise<boolean>;
}

export interface ClaimOptions extends MoveOptions {
  /** The owner at the last look. */
  readonly owner?: string | null;
  /** How long to wait for a live owner to yield; without it such an owner is not asked. */
  readonly handoffTimeoutMs?: number;
  /** The owner was asked. */
  readonly onWaiting?: (owner: string, url: string | undefined) => void;
}

/** A sandbox, and the epoch at which its caller holds it. */
export interface Holding {
  readonly id: string;
  readonly epoch: number;
}

/**
 * The ownership of sandboxes, as this instance sees and changes it. "Is it still mine?" and "move the pointer" are one
 * swap of one object, so that an outdated owner fails to publish instead of publishing.
 *
 * Every change returns the new head; `lease_lost` means that the caller must end its copy, even if this instance has
 * claimed the sandbox again since, at a later epoch. Moves of one sandbox run one after the other.
 */
export class Ownership {
  /** The sandboxes of the store, in the order of lists. */
  readonly index: SandboxIndex;
  /** The servers of the store, including this one. */
  readonly instances: Instances;
  readonly #isGone: OwnershipOptions["isGone"];

  constructor(instances: Instances, { indexFile, isGone }: OwnershipOptions = {}) {
    this.instances = instances;
    this.#isGone = isGone;
    this.index = new SandboxIndex(instances.store, indexFile);
  }

  get instanceId(): string {
    return this.instances.instanceId;
  }

  /** The head of a sandbox that this instance owns, as of its last change or look. */
  held(sandboxId: string): Head | undefined {
    return this.instances.held(sandboxId);
  }

  /** Whether the sandbox is still held at the caller's epoch. */
  holds({ id, epoch }: Holding): boolean {
    return this.held(id)?.epoch === epoch;
  }

  async read(sandboxId: string): Promise<Head | undefined> {
    return await readHead(this.instances.store, sandboxId);
  }

  /** As {@link read}, for an entry of a list: damage is returned, not thrown, and the index learns of a deletion. */
  async readStored(sandboxId: string): Promise<StoredSandbox> {
    const stored = await readStoredSandbox(this.instances.store, sandboxId);
    if (stored.head !== undefined) this.index.met(sandboxId, stored.head);
    return stored;
  }

  /** Every sandbox in the store, a damaged or headless one included; reads all their heads. */
  list(): AsyncIterable<StoredSandbox> {
    return listStoredSandboxes(this.instances.store);
  }

  /**
   * A new head at epoch 1, owned by this instance. A folder that came with a record but no head gets one too; its
   * record stays. `isFresh`: the id was never used, so there can be neither.
   */
  async create(
    sandboxId: string,
    sandbox: NewSandbox,
    options: MoveOptions & { readonly isFresh?: boolean } = {},
  ): Promise<Head> {
    const { isFresh } = options;
    return await this.instances.order(sandboxId, { kind: "create", sandbox, isFresh }, options);
  }

  /**
   * Claims the sandbox if no live instance owns it. A live owner is asked to yield if there is time; `lease_held` names
   * it, with the reason of a refusal in `details.refused`.
   */
  async claim(sandboxId: string, options: ClaimOptions = {}): Promise<Head> {
    const { handoffTimeoutMs, owner } = options;
    await this.#buryIfGone(owner);
    return await this.instances.order(sandboxId, { kind: "claim", handoffTimeoutMs }, options);
  }

  /** Makes a checkpoint the state of the sandbox. */
  async publish(
    { id, epoch }: Holding,
    checkpoint: CheckpointReference,
    options: MoveOptions & { readonly status?: string } = {},
  ): Promise<Head> {
    const { status } = options;
    return await this.instances.order(id, { kind: "publish", epoch, checkpoint, status }, options);
  }

  /** Makes a last checkpoint the state of the sandbox and releases it, in one step. */
  async publishAndRelease(
    { id, epoch }: Holding,
    checkpoint: CheckpointReference,
    options: MoveOptions = {},
  ): Promise<Head> {
    return await this.instances.order(id, { kind: "release", epoch, checkpoint }, options);
  }

  /**
   * Releases the sandbox at its current checkpoint. `stoppedAt`, for a sandbox that its provider keeps: since when it
   * is stopped there; null if it keeps running; absent: unchanged.
   */
  async release(
    { id, epoch }: Holding,
    options: MoveOptions & { readonly stoppedAt?: string | null | undefined } = {},
  ): Promise<Head> {
    const { stoppedAt } = options;
    return await this.instances.order(id, { kind: "release", epoch, checkpoint: undefined, stoppedAt }, options);
  }

  async update({ id, epoch }: Holding, details: HeadDetails, options: MoveOptions = {}): Promise<Head> {
    return await this.instances.order(id, { kind: "update", epoch, details }, options);
  }

  /** Moves the sandbox to another backend, at the next epoch. */
  async rehouse({ id, epoch }: Holding, home: NewHome, options: MoveOptions = {}): Promise<Head> {
    return await this.instances.order(id, { kind: "rehouse", epoch, home }, options);
  }

  /** Gives the sandbox another state; a promotion raises the epoch. */
  async replaceState({ id, epoch }: Holding, replacement: Replacement, options: MoveOptions = {}): Promise<Head> {
    return await this.instances.order(id, { kind: "replace", epoch, replacement }, options);
  }

  /** Refuses a request for the sandbox, with a reason. */
  async refuse(sandboxId: string, reason: string, options: MoveOptions = {}): Promise<Head> {
    return await this.instances.order(sandboxId, { kind: "refuse", reason }, options);
  }

  /** Leaves a tombstone; a sandbox that is not held is claimed first. Idempotent. */
  async destroy(sandboxId: string, options: ClaimOptions = {}): Promise<Head> {
    const { handoffTimeoutMs, owner } = options;
    await this.#buryIfGone(owner);
    return await this.instances.order(sandboxId, { kind: "destroy", handoffTimeoutMs }, options);
  }

  /** Whether a server is dead: its record says so or is missing, or its process of this machine has ended. */
  async isDead(instanceId: string): Promise<boolean> {
    await this.#buryIfGone(instanceId);
    return await this.instances.isDead(instanceId);
  }

  async #buryIfGone(owner: string | null | undefined): Promise<void> {
    if (owner == null || owner === this.instanceId || this.#isGone === undefined) return;
    if (await this.#isGone(owner)) await this.instances.markDead(owner);
  }

  /** Removes the head of a deleted sandbox of which nothing else was ever stored, so it cannot be restored. */
  async erase(sandboxId: string): Promise<void> {
    await this.instances.store.deleteTree(sandboxId);
  }

  /** Forgets what this instance believes to own, without a store request: after it was lost. */
  forget(holding: Holding): void {
    if (this.holds(holding)) this.instances.forget(holding.id);
  }
}
