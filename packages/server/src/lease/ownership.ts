import type { CheckpointReference, Head } from "@sandboxer/protocol";
import type { HeadDetails, NewHome, NewSandbox } from "./head.ts";
import type { Instances } from "./instances.ts";
import { SandboxIndex, type IndexFile } from "./sandbox-index.ts";
import { readHead } from "./stored-head.ts";
import { listStoredSandboxes, readStoredSandbox, type StoredSandbox } from "./stored-sandboxes.ts";

interface MoveOptions {
  /** The caller stops waiting. What was begun is brought to its end, and given back if it was a claim. */
  readonly signal?: AbortSignal;
}

export interface OwnershipOptions {
  /** Where this machine keeps what it knows of the store from one start to the next. */
  readonly indexFile?: IndexFile;
  /** Whether an instance was a process of this machine that has ended. Nobody need wait for the lease of such a one. */
  readonly isGone?: (instanceId: string) => Promise<boolean>;
}

export interface ClaimOptions extends MoveOptions {
  /** Who had the sandbox at the last look. */
  readonly owner?: string | null;
  /** How long to wait for a living owner to yield; without it such an owner is not asked. */
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
 * Who owns which sandbox, as this instance sees and changes it. "Is it still mine?" and "move the pointer" are one swap
 * of one object, so that an owner that was overtaken finds out by failing to publish, never by having published.
 *
 * Every change answers with the new head; `lease_lost` means that the caller must throw its copy away, also when this
 * instance has taken the sandbox again since, at a later epoch. Moves of one sandbox are made one after the other.
 */
export class Ownership {
  /** Which sandboxes the store has, in the order of lists. */
  readonly index: SandboxIndex;
  /** The servers of the store, this one among them. */
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

  /** As {@link read}, for one of a list: what is wrong with it is told, not thrown, and the index hears of its end. */
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
   * A new head at epoch 1, owned by this instance. A folder that came with a record but no head gets one too; what its
   * record says stays. `isFresh`: nobody has ever had the id, so there can be neither.
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
   * Takes the sandbox if nobody that lives owns it. A living owner is asked to yield, if there is time for that;
   * `lease_held` names it, and says in `details.refused` why it did not.
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

  /** Makes a last checkpoint the state of the sandbox and gives it up, in one step. */
  async publishAndRelease(
    { id, epoch }: Holding,
    checkpoint: CheckpointReference,
    options: MoveOptions = {},
  ): Promise<Head> {
    return await this.instances.order(id, { kind: "release", epoch, checkpoint }, options);
  }

  /**
   * Gives the sandbox up at the checkpoint it has. `stoppedAt`, of one that its provider keeps: since when it is stopped
   * there; null if it runs on; absent: as before.
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

  /** Says to whoever asks for the sandbox that it stays here, and why. */
  async refuse(sandboxId: string, reason: string, options: MoveOptions = {}): Promise<Head> {
    return await this.instances.order(sandboxId, { kind: "refuse", reason }, options);
  }

  /** Leaves a tombstone; a sandbox that is not held is claimed first. Destroying what is destroyed is fine. */
  async destroy(sandboxId: string, options: ClaimOptions = {}): Promise<Head> {
    const { handoffTimeoutMs, owner } = options;
    await this.#buryIfGone(owner);
    return await this.instances.order(sandboxId, { kind: "destroy", handoffTimeoutMs }, options);
  }

  async #buryIfGone(owner: string | null | undefined): Promise<void> {
    if (owner == null || owner === this.instanceId || this.#isGone === undefined) return;
    if (await this.#isGone(owner)) await this.instances.markDead(owner);
  }

  /** Removes the head of a destroyed sandbox of which nothing else was ever stored: nobody can bring it back. */
  async erase(sandboxId: string): Promise<void> {
    await this.instances.store.deleteTree(sandboxId);
  }

  /** Drops what this instance believes to own, without a word to the store: after it was lost. */
  forget(holding: Holding): void {
    if (this.holds(holding)) this.instances.forget(holding.id);
  }
}
