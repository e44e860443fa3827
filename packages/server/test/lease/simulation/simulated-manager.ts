import type { CheckpointReference, Head } from "@sandboxer/protocol";
import type { Failure, Notice } from "../../../src/lease/core/effects.ts";
import { collectable } from "./collectable.ts";
import type { Command } from "../../../src/lease/core/messages.ts";
import { newSandbox } from "../samples.ts";
import { Violation } from "./ledger.ts";
import { SimulatedInstance } from "./simulated-instance.ts";
import { isKept } from "./kept.ts";
import { HANDOFF_TIMEOUT_MS, type World } from "./world.ts";

/** A sandbox that runs on one instance, or is about to, or has stopped to be saved. */
interface Copy {
  epoch: number;
  /** The checkpoint that its state came from. */
  base: string | null;
  state: "restoring" | "running" | "saving";
  /** Somebody asked for it, and it yields as soon as it can. */
  wanted: boolean;
}

interface Pending {
  readonly sandboxId: string;
  readonly command: Command;
  readonly sinceMs: number;
  /** The copy that it is about; undefined: it is to get one. */
  readonly copy: Copy | undefined;
  readonly checkpoint: string | undefined;
}

const NEW_SANDBOX = newSandbox();
const NEW_KEPT_SANDBOX = { ...NEW_SANDBOX, residence: "provider" } as const;
/** No command takes longer when everything works; a waiting claim takes as long as requested. */
const ANSWER_WITHIN_MS = 6_000;

/** The manager of one simulated instance, and its clients. */
export class SimulatedManager {
  readonly instance: SimulatedInstance;
  readonly #world: World;
  readonly #copies = new Map<string, Copy>();
  readonly #pending = new Map<number, Pending>();

  constructor(world: World, name: string) {
    this.#world = world;
    this.instance = new SimulatedInstance(
      world,
      name,
      (notice) => this.#onNotice(notice),
      () => this.#onCrash(),
    );
  }

  /** Whether it lets a sandbox run, by its own reckoning. */
  runs(sandboxId: string): boolean {
    return this.#copies.get(sandboxId)?.state === "running" && !this.instance.frozen;
  }

  /** One round of what clients do. */
  act(): void {
    const { workload } = this.#world;
    for (const [sandboxId, copy] of this.#copies) if (copy.state === "running") this.#emit(sandboxId, copy);
    // Now and then somebody comes with an id from long ago.
    const isOld = workload.chance(0.03);
    const sandboxId = workload.pick(isOld ? this.#world.allSandboxIds : this.#world.sandboxIds);
    const dice = workload.next();
    if (!this.instance.registered || this.#isBusy(sandboxId)) return;
    const copy = this.#copies.get(sandboxId);
    if (copy === undefined) this.#arrive(sandboxId, dice);
    else if (copy.state === "running") this.#use(sandboxId, copy, dice);
  }

  /** With a living owner and a store that answers, everything ends. */
  checkNothingHangs(): void {
    const { nowMs } = this.#world.timeline;
    for (const { sandboxId, command, sinceMs } of this.#pending.values()) {
      const waits = "handoffTimeoutMs" in command ? 2 * (command.handoffTimeoutMs ?? 0) : 0;
      const beganMs = Math.max(sinceMs, this.#world.calmSinceMs);
      if (nowMs - beganMs > ANSWER_WITHIN_MS + waits) {
        throw new Violation(`${command.kind} of ${sandboxId} at ${this.instance.name} has no end`);
      }
    }
  }

  #arrive(sandboxId: string, dice: number): void {
    if (dice > 0.5) return;
    const handoffTimeoutMs = dice < 0.4 ? HANDOFF_TIMEOUT_MS : undefined;
    const isKnown = this.#world.ledger.heads.has(sandboxId);
    if (isKnown && dice < 0.004) return this.#order(sandboxId, { kind: "destroy", handoffTimeoutMs });
    if (!isKnown || dice > 0.47) {
      const sandbox = isKept(sandboxId) ? NEW_KEPT_SANDBOX : NEW_SANDBOX;
      return this.#order(sandboxId, { kind: "create", sandbox, isFresh: dice < 0.48 });
    }
    const ticket = this.instance.nextTicket;
    this.#order(sandboxId, { kind: "claim", handoffTimeoutMs });
    if (dice > 0.02) return;
    // A client that goes away while it waits.
    this.instance.after(dice * 100_000, () => {
      if (this.#pending.delete(ticket)) this.instance.abandon(sandboxId, ticket);
    });
  }

  #use(sandboxId: string, copy: Copy, dice: number): void {
    const { epoch } = copy;
    if (dice < 0.1 && isKept(sandboxId)) return this.#stop(sandboxId, copy);
    if (dice < 0.36 && isKept(sandboxId)) return;
    if (dice < 0.3) return this.#save(sandboxId, copy, false);
    if (dice < 0.36) return this.#save(sandboxId, copy, true);
    if (dice < 0.39) return this.#order(sandboxId, { kind: "release", epoch, checkpoint: undefined });
    if (dice < 0.43) return this.#order(sandboxId, { kind: "update", epoch, details: { status: "running" } });
    if (dice < 0.435) {
      if (this.#world.bug === "removed-before-tombstone") this.#world.provider.remove(sandboxId);
      return this.#order(sandboxId, { kind: "destroy", handoffTimeoutMs: undefined });
    }
    if (dice < 0.5) this.#promote(sandboxId, copy);
  }

  /** Gives the sandbox the state of another one that runs here, which is then deleted. */
  #promote(sandboxId: string, copy: Copy): void {
    const { workload, ledger, bug } = this.#world;
    const found = [...this.#copies].find(([id, each]) => id !== sandboxId && each.state === "running" && !isKept(id));
    if (found === undefined || isKept(sandboxId)) return;
    const [winnerId] = found;
    copy.state = "saving";
    this.instance.after(workload.between(20, 300), () => {
      const name = this.#world.name(`${sandboxId}/epoch-${copy.epoch}/promotion`);
      const { epoch, base: parent } = copy;
      ledger.onUpload({ name, sandboxId, parent, epoch, references: [name], promotes: winnerId });
      const checkpoint = referenceTo(name, parent);
      const promotion = { sandbox_id: winnerId, former: "former", promoted_at: "", ends: [] };
      if (bug === "winner-ends-first") this.#endWinner(winnerId, { sandboxId, checkpoint: name });
      if (bug === "promotion-in-two-swaps")
        return this.#order(sandboxId, { kind: "publish", epoch, checkpoint, status: undefined }, copy, name);
      this.#order(sandboxId, { kind: "replace", epoch, replacement: { checkpoint, promotion } }, copy, name);
    });
  }

  #endWinner(winnerId: string, original: { readonly sandboxId: string; readonly checkpoint: string }): void {
    if (!this.#copies.has(winnerId) || this.#isBusy(winnerId)) return;
    this.#world.ledger.onWinnerEnds(winnerId, original);
    this.#order(winnerId, { kind: "destroy", handoffTimeoutMs: undefined });
  }

  /** Stops the copy at its provider, and then gives it up. */
  #stop(sandboxId: string, copy: Copy): void {
    if (this.instance.frozen) return;
    copy.state = "saving";
    const { incarnation } = this.instance;
    this.#world.provider.stop(sandboxId, () => {
      if (incarnation !== this.instance.incarnation || this.#copies.get(sandboxId) !== copy) return;
      this.instance.after(0, () => this.#giveUp(sandboxId, copy, "then"));
    });
  }

  #giveUp(sandboxId: string, copy: Copy, stoppedAt: string | null): void {
    if (this.#copies.get(sandboxId) !== copy) return;
    if (this.#isBusy(sandboxId)) return this.instance.after(100, () => this.#giveUp(sandboxId, copy, stoppedAt));
    this.#order(sandboxId, { kind: "release", epoch: copy.epoch, checkpoint: undefined, stoppedAt });
  }

  /** A copy has stopped at its provider; somebody who was overtaken may have asked for that, before. */
  onEnded(sandboxId: string): void {
    const copy = this.#copies.get(sandboxId);
    if (copy?.state === "running") this.instance.after(0, () => this.#giveUp(sandboxId, copy, "then"));
  }

  #emit(sandboxId: string, copy: Copy): void {
    if (this.instance.frozen) return;
    this.#world.ledger.onEmission(sandboxId, this.instance.instanceId, copy.epoch);
  }

  #isBusy(sandboxId: string): boolean {
    for (const pending of this.#pending.values()) if (pending.sandboxId === sandboxId) return true;
    return false;
  }

  #order(sandboxId: string, command: Command, copy = this.#copies.get(sandboxId), checkpoint?: string): void {
    const sinceMs = this.#world.timeline.nowMs;
    // Whatever ends a sandbox here stops it first.
    if (copy !== undefined && stops(command)) copy.state = "saving";
    // The answer may come before the call returns.
    this.#pending.set(this.instance.nextTicket, { sandboxId, command, sinceMs, copy, checkpoint });
    this.instance.command(sandboxId, command);
  }

  /** Stops the sandbox, stores its state, and moves the pointer to it. */
  #save(sandboxId: string, copy: Copy, release: boolean): void {
    const { workload, ledger, faulty, bug } = this.#world;
    copy.state = "saving";
    const uploadMs = faulty && workload.chance(0.1) ? workload.between(0, 20_000) : workload.between(20, 300);
    const keepsParent = workload.chance(0.7);
    // A save does not hear that its copy was lost, or even taken again. It finds out when it publishes.
    this.instance.after(uploadMs, () => {
      const present = this.#copies.get(sandboxId) ?? copy;
      const { epoch } = bug === "late-save" ? present : copy;
      const parent = copy.base === null ? undefined : ledger.checkpoints.get(copy.base);
      const name = this.#world.name(`${sandboxId}/epoch-${copy.epoch}/checkpoint`);
      const references = [name, ...(keepsParent ? (parent?.references ?? []) : [])];
      ledger.onUpload({ name, sandboxId, parent: copy.base, epoch: copy.epoch, references });
      const checkpoint = referenceTo(name, copy.base);
      if (release) this.#order(sandboxId, { kind: "release", epoch, checkpoint }, copy, name);
      else this.#order(sandboxId, { kind: "publish", epoch, checkpoint, status: undefined }, copy, name);
    });
  }

  #collect(sandboxId: string, epoch: number, base: string): void {
    const { ledger, workload, weather, bug, timeline } = this.#world;
    this.instance.after(workload.between(0, 300), () => {
      const objects = [...ledger.objectsOf(sandboxId)].map(([name, of]) => ({ name, epoch: of }));
      const reachable = new Set(ledger.checkpoints.get(base)?.references ?? []);
      const limit = bug === "collection-regardless-of-epoch" ? Number.POSITIVE_INFINITY : epoch;
      for (const name of collectable(objects, { epoch: limit, reachable })) {
        timeline.after(weather.between(1, 60), () => ledger.onDelete(sandboxId, name));
      }
    });
  }

  #onNotice(notice: Notice): void {
    const { ledger } = this.#world;
    switch (notice.kind) {
      case "answered":
        return this.#onAnswered(notice.ticket, notice.head);
      case "failed":
        return this.#onFailed(notice.ticket, notice.failure);
      case "wanted":
        return this.#onWanted(notice.sandboxId);
      case "lost":
        return this.#lose(notice.sandboxId);
      case "fenced":
        ledger.tally.fencings++;
        for (const sandboxId of this.#copies.keys()) this.#lose(sandboxId);
        return this.instance.after(10, () => this.instance.start());
      case "frozen":
        ledger.tally.freezes++;
        return;
      case "waiting":
        return this.#world.ring(notice.owner, notice.sandboxId);
      case "thawed":
      case "registered":
      case "buried":
      case "died":
      case "closed":
    }
  }

  /** A provider-kept sandbox is released, and stays there for its new owner. */
  #lose(sandboxId: string): void {
    this.#copies.delete(sandboxId);
    if (this.#world.bug === "lost-is-removed") this.#world.provider.remove(sandboxId);
  }

  #onAnswered(ticket: number, head: Head): void {
    const pending = this.#pending.get(ticket);
    if (pending === undefined) return;
    this.#pending.delete(ticket);
    const { sandboxId, command, checkpoint } = pending;
    const { ledger } = this.#world;
    const copy = this.#presentCopy(pending);
    if (checkpoint !== undefined) {
      ledger.onAcknowledged(sandboxId, checkpoint);
      if (copy !== undefined) {
        copy.epoch = head.epoch;
        copy.base = checkpoint;
        if (this.#world.workload.chance(0.5)) this.#collect(sandboxId, copy.epoch, checkpoint);
      }
    }
    if (stops(command)) this.#copies.delete(sandboxId);
    else if (command.kind === "claim" || command.kind === "create") this.#onGranted(sandboxId, head);
    else if (copy !== undefined && isSave(command)) this.#goOn(sandboxId, copy);
    if (command.kind === "replace" && checkpoint !== undefined) {
      this.#endWinner(command.replacement.promotion?.sandbox_id ?? "", { sandboxId, checkpoint });
    }
    if (command.kind !== "destroy") return;
    if (isKept(sandboxId)) this.#world.provider.remove(sandboxId);
    this.#world.addSandbox();
  }

  #onGranted(sandboxId: string, head: Head): void {
    const { ledger, workload, faulty } = this.#world;
    ledger.tally.grants++;
    const copy: Copy = {
      epoch: head.epoch,
      base: head.checkpoint?.name ?? null,
      state: "restoring",
      wanted: false,
    };
    this.#copies.set(sandboxId, copy);
    if (isKept(sandboxId)) return this.#reattach(sandboxId, copy, head.epoch === 1);
    const fails = faulty && workload.chance(0.03);
    this.instance.after(workload.between(10, 200), () => {
      if (this.#copies.get(sandboxId) !== copy) return;
      if (fails) return this.#order(sandboxId, { kind: "release", epoch: copy.epoch, checkpoint: undefined });
      this.#world.checkAlone(sandboxId, this);
      this.#goOn(sandboxId, copy);
    });
  }

  /** The provider has the copy, unless its first owner died before it was made. */
  #reattach(sandboxId: string, copy: Copy, isNew: boolean): void {
    const { incarnation } = this.instance;
    const onAnswer = (isThere: boolean): void => {
      if (incarnation !== this.instance.incarnation || this.#copies.get(sandboxId) !== copy) return;
      if (!isThere) return this.#order(sandboxId, { kind: "destroy", handoffTimeoutMs: undefined });
      this.#world.checkAlone(sandboxId, this);
      this.#goOn(sandboxId, copy);
    };
    this.#world.provider.start(sandboxId, (isThere) => this.instance.after(0, () => onAnswer(isThere)), isNew);
  }

  #goOn(sandboxId: string, copy: Copy): void {
    copy.state = "running";
    if (copy.wanted) this.#yield(sandboxId, copy);
  }

  #onFailed(ticket: number, failure: Failure): void {
    const pending = this.#pending.get(ticket);
    if (pending === undefined) return;
    this.#pending.delete(ticket);
    const { sandboxId, command, sinceMs } = pending;
    if (failure.kind === "refused") this.#world.ledger.tally.refusals++;
    if (failure.kind === "timed-out" && sinceMs > this.#world.calmSinceMs) {
      throw new Violation(`a handoff of ${sandboxId} to ${this.instance.name} did not end`);
    }
    const copy = this.#presentCopy(pending);
    if (copy === undefined) return;
    if (failure.kind === "lost") this.#copies.delete(sandboxId);
    // Sandboxes that could not be saved, released or deleted keep running.
    else if (isSave(command) || stops(command)) this.#goOn(sandboxId, copy);
  }

  /** Undefined when it has been lost since; there may be a later one. */
  #presentCopy({ sandboxId, copy }: Pending): Copy | undefined {
    return this.#copies.get(sandboxId) === copy ? copy : undefined;
  }

  #onWanted(sandboxId: string): void {
    const { workload, faulty } = this.#world;
    const dice = workload.next();
    const copy = this.#copies.get(sandboxId);
    if (copy === undefined) return;
    if (dice < 0.15) return this.#order(sandboxId, { kind: "refuse", reason: "in use" });
    // Nothing makes an owner answer.
    if (faulty && dice < 0.2) return;
    copy.wanted = true;
    if (copy.state === "running") this.#yield(sandboxId, copy);
  }

  #yield(sandboxId: string, copy: Copy): void {
    copy.wanted = false;
    if (this.#isBusy(sandboxId)) return this.instance.after(100, () => this.#yieldLater(sandboxId, copy));
    this.#world.ledger.tally.handoffs++;
    // Provider-kept sandboxes keep running there.
    if (isKept(sandboxId)) this.#giveUp(sandboxId, copy, null);
    else this.#save(sandboxId, copy, true);
  }

  #yieldLater(sandboxId: string, copy: Copy): void {
    if (this.#copies.get(sandboxId) !== copy) return;
    copy.wanted = true;
    if (copy.state === "running") this.#yield(sandboxId, copy);
  }

  #onCrash(): void {
    this.#copies.clear();
    this.#pending.clear();
  }
}

function isSave(command: Command): boolean {
  return command.kind === "publish" || command.kind === "replace";
}

function stops(command: Command): boolean {
  return command.kind === "release" || command.kind === "destroy";
}

function referenceTo(name: string, parent: string | null): CheckpointReference {
  return { name, sha256: "", size_bytes: 0, created_at: "", kind: "simulated", parent };
}
