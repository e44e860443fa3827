import type { Head } from "@sandboxer/protocol";
import { isKept } from "./kept.ts";

/** A promise of the protocol was broken. */
export class Violation extends Error {}

export interface Checkpoint {
  readonly name: string;
  readonly sandboxId: string;
  readonly parent: string | null;
  readonly epoch: number;
  /** Every object that is needed to bring it back. */
  readonly references: readonly string[];
  /** It holds the state of this other sandbox, which is to be promoted. */
  readonly promotes?: string;
}

export interface Tally {
  commits: number;
  acknowledged: number;
  grants: number;
  takeovers: number;
  handoffs: number;
  refusals: number;
  fencings: number;
  freezes: number;
  ambiguous: number;
  emissions: number;
  collected: number;
  destroyed: number;
  promotions: number;
  /** Copies that were removed at their provider. */
  removed: number;
}

/** Sees everything that is really in the store, which no instance does, and holds it to the promises. */
export class Ledger {
  readonly tally: Tally = {
    commits: 0,
    acknowledged: 0,
    grants: 0,
    takeovers: 0,
    handoffs: 0,
    refusals: 0,
    fencings: 0,
    freezes: 0,
    ambiguous: 0,
    emissions: 0,
    collected: 0,
    destroyed: 0,
    promotions: 0,
    removed: 0,
  };
  readonly heads = new Map<string, Head>();
  readonly checkpoints = new Map<string, Checkpoint>();
  /** The stored objects of each sandbox, by the epoch that wrote them. */
  readonly objects = new Map<string, Map<string, number>>();
  readonly #seen = new Map<string, number>();
  readonly #chains = new Map<string, Set<string>>();
  readonly #committers = new Map<string, string>();
  readonly #deleted = new Set<string>();
  readonly #winners = new Map<string, { readonly sandboxId: string; readonly checkpoint: string }>();
  readonly #isDead: (instanceId: string) => boolean;

  constructor(isDead: (instanceId: string) => boolean) {
    this.#isDead = isDead;
  }

  /** A swap of a head was applied. */
  onHead(sandboxId: string, next: Head, writer: string): void {
    const before = this.heads.get(sandboxId);
    if (this.#deleted.has(sandboxId)) throw new Violation(`${sandboxId} came back after its destruction`);
    this.#checkPointer(sandboxId, before, next, writer);
    this.#checkEpochs(sandboxId, before, next, writer);
    this.heads.set(sandboxId, next);
    this.#checkReferences(sandboxId);
    if (next.state === "deleted") {
      this.#checkWinner(sandboxId);
      this.#deleted.add(sandboxId);
      this.tally.destroyed++;
    }
  }

  #checkEpochs(sandboxId: string, before: Head | undefined, next: Head, writer: string): void {
    if (before === undefined) {
      if (next.epoch !== 1 || next.owner !== writer) throw new Violation(`${sandboxId} was not created at epoch 1`);
      return;
    }
    if (next.history[0] !== before.nonce) throw new Violation(`${sandboxId}: a head does not follow the one before it`);
    if (next.epoch < before.epoch) throw new Violation(`${sandboxId}: the epoch went back`);
    const changesOwner = next.owner !== null && next.owner !== before.owner;
    if (changesOwner && next.epoch === before.epoch) {
      throw new Violation(`${sandboxId}: two owners in the epoch ${next.epoch}`);
    }
    if (changesOwner && before.owner !== null) {
      this.tally.takeovers++;
      if (!this.#isDead(before.owner)) throw new Violation(`${sandboxId} was taken from ${before.owner}, who lives`);
    }
    if (before.owner !== null && writer !== before.owner && !changesOwner && next.epoch !== before.epoch) {
      throw new Violation(`${sandboxId}: ${writer} changed the epoch of ${before.owner}`);
    }
  }

  #checkPointer(sandboxId: string, before: Head | undefined, next: Head, writer: string): void {
    const previous = before?.checkpoint?.name ?? null;
    const name = next.checkpoint?.name ?? null;
    if (name === previous || next.state === "deleted") return;
    const checkpoint = name === null ? undefined : this.checkpoints.get(name);
    if (checkpoint === undefined) throw new Violation(`${sandboxId}: the pointer went to ${name}`);
    if (checkpoint.parent !== previous) {
      throw new Violation(`lost update: ${name} was built on ${checkpoint.parent}, and the head was ${previous}`);
    }
    this.#checkPromotion(sandboxId, before, next, checkpoint);
    const isPromotion = checkpoint.promotes !== undefined;
    if (checkpoint.epoch !== next.epoch - (isPromotion ? 1 : 0)) {
      throw new Violation(`stale state: ${name} was captured at epoch ${checkpoint.epoch}, published at ${next.epoch}`);
    }
    const key = `${sandboxId}@${next.epoch}`;
    const committer = this.#committers.get(key) ?? writer;
    if (committer !== writer) throw new Violation(`${key} has the committers ${committer} and ${writer}`);
    this.#committers.set(key, writer);
    this.#chainOf(sandboxId).add(checkpoint.name);
    this.tally.commits++;
  }

  /** The state of a fork, its name as the winner and the next epoch come in one swap. */
  #checkPromotion(sandboxId: string, before: Head | undefined, next: Head, { promotes }: Checkpoint): void {
    if (promotes === undefined) return;
    if (next.promotion?.sandbox_id !== promotes || next.epoch !== (before?.epoch ?? 0) + 1) {
      throw new Violation(`${sandboxId} has the state of ${promotes}, and its head does not say so`);
    }
    this.tally.promotions++;
  }

  /** A fork is deleted because its state went to another sandbox, as this checkpoint. */
  onWinnerEnds(winnerId: string, original: { readonly sandboxId: string; readonly checkpoint: string }): void {
    this.#winners.set(winnerId, original);
  }

  #checkWinner(winnerId: string): void {
    const original = this.#winners.get(winnerId);
    if (original === undefined || this.#chainOf(original.sandboxId).has(original.checkpoint)) return;
    throw new Violation(`${winnerId} was deleted, and its state is not in ${original.sandboxId}`);
  }

  #chainOf(sandboxId: string): Set<string> {
    const chain = this.#chains.get(sandboxId) ?? new Set();
    this.#chains.set(sandboxId, chain);
    return chain;
  }

  /** How often something became of a sandbox: it was saved or, where its provider keeps it, let itself be seen. */
  signsOf(sandboxId: string): number {
    return (isKept(sandboxId) ? this.#seen.get(sandboxId) : this.#chains.get(sandboxId)?.size) ?? 0;
  }

  isDeleted(sandboxId: string): boolean {
    return this.#deleted.has(sandboxId);
  }

  objectsOf(sandboxId: string): Map<string, number> {
    const objects = this.objects.get(sandboxId) ?? new Map<string, number>();
    this.objects.set(sandboxId, objects);
    return objects;
  }

  /** The data of a checkpoint was stored, before anything points at it. */
  onUpload(checkpoint: Checkpoint): void {
    this.checkpoints.set(checkpoint.name, checkpoint);
    this.objectsOf(checkpoint.sandboxId).set(checkpoint.name, checkpoint.epoch);
  }

  onDelete(sandboxId: string, name: string): void {
    if (this.objectsOf(sandboxId).delete(name)) this.tally.collected++;
    this.#checkReferences(sandboxId);
  }

  #checkReferences(sandboxId: string): void {
    const name = this.heads.get(sandboxId)?.checkpoint?.name;
    if (name !== undefined) this.#checkRestorable(sandboxId, name);
  }

  #checkRestorable(sandboxId: string, name: string): void {
    const stored = this.objectsOf(sandboxId);
    for (const reference of this.checkpoints.get(name)?.references ?? []) {
      if (!stored.has(reference)) throw new Violation(`the head ${name} references ${reference}, which was deleted`);
    }
  }

  /** A client got the confirmation that its checkpoint is safe. */
  onAcknowledged(sandboxId: string, name: string): void {
    if (!this.#chainOf(sandboxId).has(name)) throw new Violation(`${name} was acknowledged and is not in the chain`);
    this.tally.acknowledged++;
  }

  /** A sandbox lets something be seen: only its owner by the store, at this very moment, may. */
  onEmission(sandboxId: string, instanceId: string, epoch: number): void {
    const head = this.heads.get(sandboxId);
    if (head?.owner !== instanceId || head.epoch !== epoch) {
      const owner = head === undefined ? "it is not there" : `it is ${head.owner}'s at epoch ${head.epoch}`;
      throw new Violation(`${instanceId} lets ${sandboxId} run at epoch ${epoch}, and ${owner}`);
    }
    this.#seen.set(sandboxId, (this.#seen.get(sandboxId) ?? 0) + 1);
    this.tally.emissions++;
  }
}
