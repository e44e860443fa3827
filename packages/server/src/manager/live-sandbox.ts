import { canMove, SandboxerError } from "@sandboxer/protocol";
import type { About, HeadFlags, Lineage, SandboxState } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxSpec } from "../backends/backend.ts";
import type { MasterKey } from "../checkpoints/keys/master-key.ts";
import { SerialQueue } from "../support/serial-queue.ts";
import { imageKey } from "../checkpoints/snapshot-record.ts";
import type { SandboxClient } from "./client.ts";
import type { Sandbox } from "./sandbox.ts";
import { LiveSaves } from "./saving/live-saves.ts";
import { type AtRisk, UnsavedChanges } from "./saving/unsaved-changes.ts";
import { SandboxProcesses } from "./processes/sandbox-processes.ts";

/** What a sandbox is, here and on every server after this one. */
export interface SandboxFacts {
  readonly sandboxId: string;
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly labels: Readonly<Record<string, string>>;
  readonly flags: HeadFlags;
  readonly idleTimeoutMs: number;
  readonly tokenHash: string | undefined;
  /** Who has it while no server runs it. */
  readonly residence: "store" | "provider";
  /** Which of the copies at its provider it is; see the head. */
  readonly copy: number;
  readonly about: About;
  /** Where its first state came from. */
  readonly lineage: Lineage;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** Of a sandbox that has never had another owner. */
const FIRST_EPOCH = 1;

/** A sandbox that this server runs, or is about to run or to end. */
export class LiveSandbox implements Sandbox {
  /** Saves, snapshots and the end of a sandbox exclude one another. */
  readonly queue = new SerialQueue();
  /** What its users have started inside. */
  readonly processes = new SandboxProcesses();
  /** Saves that it goes on after. */
  readonly liveSaves = new LiveSaves();
  /** What its newest checkpoint does not have. */
  readonly unsaved: UnsavedChanges;
  readonly #creation = new AbortController();
  readonly #begun = Promise.withResolvers<void>();
  #holds = 0;
  readonly #onUnheld: (() => void)[] = [];
  readonly #onMove: (from: SandboxState, to: SandboxState) => void;
  #facts: SandboxFacts;
  #state: SandboxState;
  #handle: SandboxHandle | undefined;
  #client: SandboxClient | undefined;
  #activeMs: number;
  /** The epoch at which this server holds it. */
  epoch = FIRST_EPOCH;
  /** The checkpoint that the present state came from. */
  parentCheckpoint: string | null = null;
  /** The images that were made of its state here since the parent's, by their keys, the newest first; some may be gone. */
  newestImages: readonly string[] = [];
  /** Its client's key, where its states are under that; kept for as long as it is here. */
  clientKey: MasterKey | undefined;
  /** Why more of it could be lost than was promised; undefined: no more could. */
  atRisk: AtRisk | undefined;
  /** Since when it is held still until this server can prove again that it is alive, by the monotonic clock. */
  frozenMs: number | undefined;
  /** When it was stopped for its save, by the monotonic clock of this server; undefined again when that has failed. */
  stoppedMs: number | undefined;

  constructor(
    facts: SandboxFacts,
    state: "creating" | "restoring",
    nowMs: number,
    onMove: (from: SandboxState, to: SandboxState) => void,
  ) {
    this.#facts = facts;
    this.#state = state;
    this.#activeMs = nowMs;
    this.unsaved = new UnsavedChanges(nowMs);
    this.#onMove = onMove;
  }

  get facts(): SandboxFacts {
    return this.#facts;
  }

  /** What its user may change. To be stored first. */
  amend(changes: Pick<Partial<SandboxFacts>, "labels" | "idleTimeoutMs" | "about" | "lineage" | "copy">): void {
    this.#facts = { ...this.#facts, ...changes };
  }

  /** Notes that it lives at another backend now, begun from a snapshot. To be stored first. */
  rehouse(facts: SandboxFacts, epoch: number): void {
    this.#facts = facts;
    this.epoch = epoch;
    this.parentCheckpoint = null;
    this.newestImages = facts.lineage.snapshot == null ? [] : [imageKey(facts.lineage.snapshot)];
  }

  get id(): string {
    return this.facts.sandboxId;
  }

  get state(): SandboxState {
    return this.#state;
  }

  /** The one place where a sandbox changes its state. */
  moveTo(next: SandboxState): void {
    if (!canMove(this.#state, next)) {
      throw new SandboxerError("wrong_state", `The sandbox is ${this.#state} and cannot become ${next}.`, {
        details: { state: this.#state },
      });
    }
    const from = this.#state;
    this.#state = next;
    this.#onMove(from, next);
    this.#begun.resolve();
    if (next === "gone") this.#tellUnheld();
  }

  checkRunning(): void {
    if (this.#state === "running") return;
    const details = { state: this.#state };
    throw new SandboxerError("wrong_state", `The sandbox is ${this.#state}.`, { details });
  }

  /** Aborted when nobody wants the sandbox any more that is still being made. */
  get creation(): AbortSignal {
    return this.#creation.signal;
  }

  /**
   * Calls off the creation of a sandbox, which fails for this reason. Resolves when the sandbox is gone, or runs all the
   * same because it was too late.
   */
  abortCreation(reason: SandboxerError): Promise<void> {
    this.#creation.abort(reason);
    return this.#begun.promise;
  }

  /** Whether it was stopped here in order to continue on another server or later, with its processes. */
  get isLeaving(): boolean {
    return this.stoppedMs !== undefined && this.#state !== "running";
  }

  get handle(): SandboxHandle {
    if (this.#handle === undefined) throw new SandboxerError("wrong_state", `The sandbox is ${this.#state}.`);
    return this.#handle;
  }

  started(handle: SandboxHandle): void {
    this.#handle = handle;
    this.moveTo("running");
  }

  /** Another copy takes the place of the present one, which is given back to be ended. */
  replaceHandle(fresh: SandboxHandle): SandboxHandle {
    const old = this.handle;
    this.#handle = fresh;
    return old;
  }

  get client(): SandboxClient | undefined {
    return this.#client;
  }

  attach(client: SandboxClient, nowMs: number): void {
    if (this.#client !== undefined)
      throw new SandboxerError("sandbox_in_use", "Another client is attached to the sandbox.");
    this.#client = client;
    this.touch(nowMs);
  }

  /** Whether this client was the one that was attached. */
  detach(client: SandboxClient): boolean {
    if (this.#client !== client) return false;
    this.#client = undefined;
    return true;
  }

  get executing(): boolean {
    return this.processes.execution?.running === true;
  }

  touch(nowMs: number): void {
    this.#activeMs = nowMs;
    this.unsaved.noteUse(nowMs);
  }

  idleMs(nowMs: number): number {
    return this.executing ? 0 : nowMs - this.#activeMs;
  }

  /** A client's call that may take long: the sandbox is not idle until the function that this gives is called. */
  hold(nowMs: () => number): () => void {
    this.#holds += 1;
    this.touch(nowMs());
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#holds -= 1;
      this.touch(nowMs());
      if (!this.held) this.#tellUnheld();
    };
  }

  /** Whether a client's call is under way, such as a transfer of files. */
  get held(): boolean {
    return this.#holds > 0;
  }

  /** Resolves when no call is under way any more, or the sandbox is gone, whose calls end when they will. */
  async unheld(): Promise<void> {
    if (!this.held || this.#state === "gone") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onUnheld.push(resolve);
    await promise;
  }

  #tellUnheld(): void {
    for (const resolve of this.#onUnheld.splice(0)) resolve();
  }

  isIdle(nowMs: number): boolean {
    if (this.held || this.processes.running) return false;
    return this.#state === "running" && nowMs - this.#activeMs >= this.facts.idleTimeoutMs;
  }

  get durable(): boolean {
    return this.facts.flags.enable_checkpoint;
  }

  /** Whether another server could have it after this one: it is saved to the store, or its provider keeps it. */
  get outlivesServer(): boolean {
    return this.durable || this.facts.residence === "provider";
  }
}

/** What the manager knows of a sandbox that it has given out. */
export function live(sandbox: Sandbox): LiveSandbox {
  if (sandbox instanceof LiveSandbox) return sandbox;
  throw new TypeError("This sandbox was not created by this manager.");
}
