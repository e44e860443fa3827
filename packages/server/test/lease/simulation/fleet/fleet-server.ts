import type { Head } from "@sandboxer/protocol";
import type { Failure, Notice } from "../../../../src/lease/core/effects.ts";
import type { Command } from "../../../../src/lease/core/messages.ts";
import { newSandbox } from "../../samples.ts";
import { SimulatedInstance } from "../simulated-instance.ts";
import type { FleetWorld } from "./fleet-world.ts";

interface Copy {
  epoch: number;
  base: string | null;
  /** It has stopped to be saved and released. */
  leaving: boolean;
}

interface Pending {
  readonly sandboxId: string;
  readonly command: Command;
  readonly checkpoint: string | undefined;
}

const NEW_SANDBOX = newSandbox();
const HANDOFF_TIMEOUT_MS = 30_000;
const UPGRADE_MS = 20_000;
const DRAIN_LOOK_MS = 1_000;
const SEEN_AT_ONCE = 5;

/** A server of a fleet: it holds many sandboxes, saves, pauses and resumes some of them, and is upgraded. */
export class FleetServer {
  readonly instance: SimulatedInstance;
  readonly zone: number;
  readonly copies = new Map<string, Copy>();
  readonly #world: FleetWorld;
  readonly #pending = new Map<number, Pending>();
  readonly #busy = new Set<string>();
  #draining = false;

  constructor(world: FleetWorld, name: string, zone: number) {
    this.#world = world;
    this.zone = zone;
    this.instance = new SimulatedInstance(
      world,
      name,
      (notice) => this.#onNotice(notice),
      () => this.#onCrash(),
    );
  }

  runs(sandboxId: string): boolean {
    return this.copies.get(sandboxId)?.leaving === false && !this.instance.frozen;
  }

  create(sandboxId: string): void {
    this.#order(sandboxId, { kind: "create", sandbox: NEW_SANDBOX, isFresh: true });
  }

  claim(sandboxId: string): void {
    if (!this.instance.registered || this.#draining || this.#busy.has(sandboxId) || this.copies.has(sandboxId)) return;
    this.#order(sandboxId, { kind: "claim", handoffTimeoutMs: HANDOFF_TIMEOUT_MS });
  }

  /** One round of what its clients do. */
  act(): void {
    const { workload, sandboxIds } = this.#world;
    if (!this.instance.registered || this.#draining) return;
    const held = [...this.copies.keys()];
    for (let count = 0; count < SEEN_AT_ONCE && held.length > 0; count++) this.#emit(workload.pick(held));
    const dice = workload.next();
    if (dice < 0.4) return this.claim(workload.pick(sandboxIds));
    if (held.length > 0) this.#save(workload.pick(held), dice < 0.6);
  }

  /** Saves and releases everything, ends in order, and starts again. */
  upgrade(): void {
    if (!this.instance.registered || this.#draining) return;
    this.#draining = true;
    this.#drain();
  }

  #drain(): void {
    for (const [sandboxId, copy] of this.copies) if (!copy.leaving) this.#save(sandboxId, true);
    if (this.copies.size === 0 && this.#busy.size === 0) return this.instance.close();
    this.instance.after(DRAIN_LOOK_MS, () => this.#drain());
  }

  #emit(sandboxId: string): void {
    const copy = this.copies.get(sandboxId);
    if (copy === undefined || !this.runs(sandboxId)) return;
    this.#world.ledger.onEmission(sandboxId, this.instance.instanceId, copy.epoch);
  }

  #save(sandboxId: string, release: boolean): void {
    const copy = this.copies.get(sandboxId);
    if (copy === undefined || copy.leaving || this.#busy.has(sandboxId) || this.instance.frozen) return;
    copy.leaving = release;
    const { workload, ledger } = this.#world;
    this.#busy.add(sandboxId);
    this.instance.after(workload.between(200, 3_000), () => {
      this.#busy.delete(sandboxId);
      const { epoch, base: parent } = copy;
      const name = this.#world.name(`${sandboxId}/epoch-${epoch}/checkpoint`);
      ledger.onUpload({ name, sandboxId, parent, epoch, references: [name] });
      const checkpoint = { name, sha256: "", size_bytes: 0, created_at: "", kind: "simulated", parent };
      const command: Command = release
        ? { kind: "release", epoch, checkpoint }
        : { kind: "publish", epoch, checkpoint, status: undefined };
      this.#order(sandboxId, command, name);
    });
  }

  #order(sandboxId: string, command: Command, checkpoint?: string): void {
    this.#busy.add(sandboxId);
    this.#pending.set(this.instance.nextTicket, { sandboxId, command, checkpoint });
    this.instance.command(sandboxId, command);
  }

  #take(ticket: number): Pending | undefined {
    const pending = this.#pending.get(ticket);
    this.#pending.delete(ticket);
    if (pending !== undefined) this.#busy.delete(pending.sandboxId);
    return pending;
  }

  #onNotice(notice: Notice): void {
    const { ledger } = this.#world;
    switch (notice.kind) {
      case "answered":
        return this.#onAnswered(notice.ticket, notice.head);
      case "failed":
        return this.#onFailed(notice.ticket, notice.failure);
      case "wanted":
        ledger.tally.handoffs++;
        return this.#save(notice.sandboxId, true);
      case "lost":
        return void this.copies.delete(notice.sandboxId);
      case "fenced":
        ledger.tally.fencings++;
        this.#world.orphans.push(...this.copies.keys());
        this.copies.clear();
        return this.instance.after(10, () => this.instance.start());
      case "frozen":
        ledger.tally.freezes++;
        return;
      case "waiting":
        return this.#world.ring(notice.owner, notice.sandboxId);
      case "closed":
        return this.instance.crash(UPGRADE_MS);
      case "registered":
      case "thawed":
      case "buried":
      case "died":
    }
  }

  #onAnswered(ticket: number, head: Head): void {
    const pending = this.#take(ticket);
    if (pending === undefined) return;
    const { sandboxId, command, checkpoint } = pending;
    const { ledger } = this.#world;
    if (checkpoint !== undefined) ledger.onAcknowledged(sandboxId, checkpoint);
    const copy = this.copies.get(sandboxId);
    if (command.kind === "release") this.#onReleased(sandboxId);
    else if (command.kind === "publish" && copy?.epoch === head.epoch) copy.base = checkpoint ?? copy.base;
    else if (command.kind === "claim" || command.kind === "create") {
      ledger.tally.grants++;
      this.#world.checkAlone(sandboxId, this);
      this.copies.set(sandboxId, { epoch: head.epoch, base: head.checkpoint?.name ?? null, leaving: false });
    }
  }

  /** A sandbox that ran is resumed elsewhere when its server is upgraded. */
  #onReleased(sandboxId: string): void {
    this.copies.delete(sandboxId);
    if (this.#draining) this.#world.orphans.push(sandboxId);
  }

  #onFailed(ticket: number, failure: Failure): void {
    const pending = this.#take(ticket);
    if (pending === undefined) return;
    const { sandboxId, command } = pending;
    if (failure.kind === "refused") this.#world.ledger.tally.refusals++;
    // It is tried again until somebody has it.
    if (command.kind === "create") return this.instance.after(1_000, () => this.#again(sandboxId));
    const copy = this.copies.get(sandboxId);
    if (copy === undefined) return;
    if (failure.kind === "lost") this.copies.delete(sandboxId);
    else copy.leaving = false;
  }

  #again(sandboxId: string): void {
    if (!this.#world.ledger.heads.has(sandboxId)) this.create(sandboxId);
  }

  #onCrash(): void {
    this.#world.orphans.push(...this.copies.keys());
    this.copies.clear();
    this.#pending.clear();
    this.#busy.clear();
    this.#draining = false;
  }
}
