import { type CheckpointReference, type Head, SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import {
  claim,
  destroy,
  type HeadDetails,
  type Move,
  newHead,
  type NewSandbox,
  type Owner,
  publishCheckpoint,
  release,
  updateDetails,
} from "./head.ts";
import { withImported } from "./head-codec.ts";
import { HeadStore, type VersionedHead } from "./head-store.ts";
import type { Liveness } from "./instances.ts";
import { KeyedQueue } from "./keyed-queue.ts";
import { destroyed, held, lost, notFound } from "./ownership-errors.ts";
import { listStoredSandboxes, type StoredSandbox } from "./stored-sandboxes.ts";

export interface OwnershipOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** This instance's id under its present life; asked each time, because a fenced instance goes on under a new one. */
  readonly instanceId: () => string;
  readonly liveness: Liveness;
}

interface MoveOptions {
  readonly signal?: AbortSignal;
}

/**
 * Who owns which sandbox, as this instance sees and changes it. "Is it still mine?" and "move the pointer" are one swap
 * of one object, so that an owner that was overtaken finds out by failing to publish, never by having published.
 *
 * Every change answers with the new head; `lease_lost` means that this instance must throw its copy away.
 */
export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #heads: HeadStore;
  /** What this instance owns. Missing here and owned according to the store: the answer to a claim was lost. */
  readonly #held = new Map<string, VersionedHead>();
  readonly #queue = new KeyedQueue();

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#heads = new HeadStore(options.store, options.clock);
  }

  /** The head of a sandbox that this instance owns, as of its last change. */
  held(sandboxId: string): Head | undefined {
    return this.#held.get(sandboxId)?.head;
  }

  async read(sandboxId: string): Promise<Head | undefined> {
    return (await this.#heads.read(sandboxId))?.head;
  }

  /** Every sandbox in the store, a damaged or headless one included. */
  list(): AsyncIterable<StoredSandbox> {
    return listStoredSandboxes(this.#options.store, this.#heads);
  }

  /**
   * A new head at epoch 1, owned by this instance. A folder that came with a record but no head gets one too; what its
   * record says stays.
   */
  async create(sandboxId: string, sandbox: NewSandbox, options: MoveOptions = {}): Promise<Head> {
    return await this.#queue.run(sandboxId, async () => {
      const record = await this.#heads.readRecord(sandboxId);
      if (record !== undefined && "head" in record) throw alreadyThere(sandboxId);
      const fresh = newHead(this.#options.instanceId(), sandbox, this.#heads.stamp());
      const head = record === undefined ? fresh : withImported(fresh, record.imported);
      const swap = await this.#heads.swap(sandboxId, record?.version, head, options.signal);
      if (swap.outcome !== "written") throw alreadyThere(sandboxId);
      return this.#keep(sandboxId, swap.present);
    });
  }

  /** Takes the sandbox if nobody that lives owns it; `lease_held` names who does. */
  async claim(sandboxId: string, options: MoveOptions = {}): Promise<Head> {
    return await this.#queue.run(sandboxId, async () => await this.#claim(sandboxId, options));
  }

  /** Makes a checkpoint the state of the sandbox. */
  async publish(
    sandboxId: string,
    checkpoint: CheckpointReference,
    options: MoveOptions & { readonly status?: string } = {},
  ): Promise<Head> {
    return await this.#move(sandboxId, (owner) => publishCheckpoint(owner, checkpoint, options.status), options);
  }

  /** Makes a last checkpoint the state of the sandbox and gives it up, in one step. */
  async publishAndRelease(
    sandboxId: string,
    checkpoint: CheckpointReference,
    options: MoveOptions = {},
  ): Promise<Head> {
    return await this.#move(sandboxId, (owner) => release(owner, checkpoint), options);
  }

  /** Gives the sandbox up at the checkpoint it has. */
  async release(sandboxId: string, options: MoveOptions = {}): Promise<Head> {
    return await this.#move(sandboxId, (owner) => release(owner), options);
  }

  async update(sandboxId: string, details: HeadDetails, options: MoveOptions = {}): Promise<Head> {
    return await this.#move(sandboxId, (owner) => updateDetails(owner, details), options);
  }

  /** Leaves a tombstone; a sandbox that is not held is claimed first. Destroying what is destroyed is fine. */
  async destroy(sandboxId: string, options: MoveOptions = {}): Promise<Head> {
    return await this.#queue.run(sandboxId, async () => {
      if (!this.#held.has(sandboxId)) {
        const present = await this.#heads.read(sandboxId);
        if (present?.head.state === "deleted") return present.head;
        await this.#claim(sandboxId, options);
      }
      return await this.#moveHeld(sandboxId, destroy, options);
    });
  }

  /** Drops what this instance believes to own, without a word to the store: after it was fenced. */
  forget(sandboxId: string): void {
    this.#held.delete(sandboxId);
  }

  async #claim(sandboxId: string, options: MoveOptions): Promise<Head> {
    const me = this.#options.instanceId();
    for (;;) {
      const present = await this.#heads.read(sandboxId);
      if (present === undefined) throw notFound(sandboxId);
      const { owner, epoch } = present.head;
      if (owner === me && this.#held.get(sandboxId)?.head.epoch === epoch) return this.#keep(sandboxId, present);

      const isDead = owner !== null && owner !== me && (await this.#options.liveness.isDead(owner));
      const result = claim(me, isDead ? owner : undefined)(present.head, this.#heads.stamp());
      if ("refusal" in result) throw await this.#asError(sandboxId, present.head);
      const swap = await this.#heads.swap(sandboxId, present.version, result.head, options.signal);
      if (swap.outcome === "written")
        return this.#keepIfOurs(sandboxId, swap.present, { instanceId: me, epoch: epoch + 1 });
    }
  }

  async #move(sandboxId: string, move: (owner: Owner) => Move, options: MoveOptions): Promise<Head> {
    return await this.#queue.run(sandboxId, async () => await this.#moveHeld(sandboxId, move, options));
  }

  async #moveHeld(sandboxId: string, move: (owner: Owner) => Move, options: MoveOptions): Promise<Head> {
    const start = this.#held.get(sandboxId);
    if (start === undefined) throw lost(sandboxId, await this.read(sandboxId));
    const owner: Owner = { instanceId: this.#options.instanceId(), epoch: start.head.epoch };
    for (let base = start; ;) {
      const result = move(owner)(base.head, this.#heads.stamp());
      if ("refusal" in result) throw this.#lose(sandboxId, base.head);
      const swap = await this.#heads.swap(sandboxId, base.version, result.head, options.signal);
      if (swap.outcome === "written") return this.#settle(sandboxId, result.head, swap.present, owner);
      const present = await this.#heads.read(sandboxId);
      // Others may ask for the sandbox and change nothing else; then the same move goes on top of that.
      if (present === undefined || !differsInRequestOnly(present.head, base.head)) {
        throw this.#lose(sandboxId, present?.head);
      }
      base = present;
    }
  }

  /** The move was applied. Whether the sandbox is still held depends on what was meant and what came after. */
  #settle(sandboxId: string, moved: Head, present: VersionedHead, owner: Owner): Head {
    if (moved.owner === null) {
      this.#held.delete(sandboxId);
      return moved;
    }
    return this.#keepIfOurs(sandboxId, present, owner);
  }

  #keepIfOurs(sandboxId: string, present: VersionedHead, owner: Owner): Head {
    const { head } = present;
    if (head.owner !== owner.instanceId || head.epoch !== owner.epoch) throw this.#lose(sandboxId, head);
    return this.#keep(sandboxId, present);
  }

  #keep(sandboxId: string, present: VersionedHead): Head {
    this.#held.set(sandboxId, present);
    return present.head;
  }

  #lose(sandboxId: string, present: Head | undefined): SandboxerError {
    this.#held.delete(sandboxId);
    return lost(sandboxId, present);
  }

  async #asError(sandboxId: string, head: Head): Promise<SandboxerError> {
    if (head.state === "deleted") return destroyed(sandboxId);
    const url = head.owner === null ? undefined : await this.#options.liveness.urlOf(head.owner);
    return held(sandboxId, head, url);
  }
}

function alreadyThere(sandboxId: string): SandboxerError {
  return new SandboxerError("wrong_state", `The store has a sandbox ${sandboxId} already.`);
}

function differsInRequestOnly(present: Head, base: Head): boolean {
  return (
    present.epoch === base.epoch &&
    present.owner === base.owner &&
    present.state === base.state &&
    present.checkpoint?.sha256 === base.checkpoint?.sha256
  );
}
