import { canMove, SandboxerError } from "@sandboxer/protocol";
import type { About, HeadFlags, Lineage, SandboxState } from "@sandboxer/protocol";
import type { SandboxHandle, SandboxSpec } from "../backends/backend.ts";
import type { MasterKey } from "../checkpoints/keys/master-key.ts";
import { SerialQueue } from "../support/serial-queue.ts";
import { imageKey } from "../checkpoints/snapshot-record.ts";
import type { SandboxClient } from "./client.ts";
import type { Sandbox } from "./sandbox.ts";
import type { NetworkAccess } from "./network/network-access.ts";
import { LiveSaves } from "./saving/live-saves.ts";
import { type AtRisk, UnsavedChanges } from "./saving/unsaved-changes.ts";
import { SandboxProcesses } from "./processes/sandbox-processes.ts";

/** The identity of a sandbox, on this server and on every server after it. */
export interface SandboxFacts {
  readonly sandboxId: string;
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly labels: Readonly<Record<string, string>>;
  readonly flags: HeadFlags;
  readonly idleTimeoutMs: number;
  readonly tokenHash: string | undefined;
  /** Where the sandbox is while no server runs it. */
  readonly residence: "store" | "provider";
  /** The number of its copy at the provider; see the head. */
  readonly copy: number;
  readonly about: About;
  /** Where its first state came from. */
  readonly lineage: Lineage;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** How many processes a record names, and how much of a command. */
const SHOWN_PROCESSES = 5;
const SHOWN_COMMAND = 60;

/** For a sandbox that never had another owner. */
const FIRST_EPOCH = 1;

/** A sandbox that this server runs, or is about to run or end. */
export class LiveSandbox implements Sandbox {
  /** Saves, snapshots and the end of a sandbox exclude one another. */
  readonly queue = new SerialQueue();
  /** Processes that its users started. */
  readonly processes = new SandboxProcesses();
  /** Checkpoints after which it keeps running. */
  readonly liveSaves = new LiveSaves();
  /** Changes that are not in its newest checkpoint. */
  readonly unsaved: UnsavedChanges;
  readonly #creation = new AbortController();
  readonly #begun = Promise.withResolvers<void>();
  /** Calls in progress by their kind. */
  readonly #holds = new Map<string, number>();
  readonly #onUnheld: (() => void)[] = [];
  readonly #onMove: (from: SandboxState, to: SandboxState) => void;
  #facts: SandboxFacts;
  #state: SandboxState;
  #handle: SandboxHandle | undefined;
  #network: NetworkAccess | undefined;
  #client: SandboxClient | undefined;
  #activeMs: number;
  /** The epoch at which this server holds it. */
  epoch = FIRST_EPOCH;
  /** The checkpoint that the current state came from. */
  parentCheckpoint: string | null = null;
  /** Images of its state that were made here since the parent, by key, newest first; some may have been removed. */
  newestImages: readonly string[] = [];
  /** The client's key, if its states are encrypted with one; kept while the sandbox is live. */
  clientKey: MasterKey | undefined;
  /** Why max_loss is not met; undefined: it is met. */
  atRisk: AtRisk | undefined;
  /** This server resumed it by itself, and nobody has used it here since. */
  isUnused = false;
  /** Monotonic time since which it is frozen, because this server cannot renew its lease. */
  frozenMs: number | undefined;
  /** Monotonic time at which it was stopped for its save; undefined again if the save failed. */
  stoppedMs: number | undefined;
  /** The publication of a pause that the drain called off; its answer may still arrive. */
  unansweredSave: Promise<unknown> | undefined;

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

  /** Properties that its user may change. Store them first. */
  amend(
    changes: Pick<Partial<SandboxFacts>, "labels" | "idleTimeoutMs" | "about" | "lineage" | "copy" | "spec">,
  ): void {
    this.#facts = { ...this.#facts, ...changes };
  }

  /** Records that the sandbox now runs on another backend, started from a snapshot. Store it first. */
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

  /** Aborted when nobody wants a sandbox that is still being created. */
  get creation(): AbortSignal {
    return this.#creation.signal;
  }

  /**
   * Cancels the creation of a sandbox with this error. Resolves when the sandbox has ended, or runs because it was too
   * late.
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

  /** How it reaches the network; undefined before it has started. */
  get network(): NetworkAccess | undefined {
    return this.#network;
  }

  started(handle: SandboxHandle, network: NetworkAccess): void {
    this.#handle = handle;
    this.#network = network;
    this.moveTo("running");
  }

  /** Replaces the current copy, which is returned so that the caller can end it. */
  replaceHandle(fresh: SandboxHandle, network: NetworkAccess): SandboxHandle {
    const old = this.handle;
    this.#handle = fresh;
    this.#network = network;
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
    this.isUnused = false;
    this.#activeMs = nowMs;
    this.unsaved.noteUse(nowMs);
  }

  idleMs(nowMs: number): number {
    return this.executing ? 0 : nowMs - this.#activeMs;
  }

  /**
   * A client's call that may take long: the sandbox is not idle until the returned function is called. Its kind is shown
   * to people.
   */
  hold(nowMs: () => number, what: string): () => void {
    this.#holds.set(what, (this.#holds.get(what) ?? 0) + 1);
    this.touch(nowMs());
    let over = false;
    return () => {
      if (over) return;
      over = true;
      const left = (this.#holds.get(what) ?? 1) - 1;
      if (left === 0) this.#holds.delete(what);
      else this.#holds.set(what, left);
      this.touch(nowMs());
      if (!this.held) this.#tellUnheld();
    };
  }

  /** Whether a client's call is in progress, such as a file transfer. */
  get held(): boolean {
    return this.#holds.size > 0;
  }

  /** Resolves when no call is in progress, or the sandbox has ended. */
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
    if (this.held || this.processes.busy.length > 0) return false;
    return this.#state === "running" && nowMs - this.#activeMs >= this.facts.idleTimeoutMs;
  }

  /** The reasons why it is not idle, for people. */
  get busyWith(): string[] {
    const running = this.processes.busy;
    const words = running.slice(0, SHOWN_PROCESSES).map(({ pid, traits, command }) => {
      const what = traits.execution ? "execution" : "process";
      return `${what} ${pid}${command === null ? "" : `: ${shortText(command.join(" "))}`}`;
    });
    const more = running.length - words.length;
    if (more > 0) words.push(`${more} more processes`);
    for (const [what, count] of this.#holds) words.push(count === 1 ? what : `${what} (${count} times)`);
    return words;
  }

  get durable(): boolean {
    return this.facts.flags.enable_checkpoint;
  }

  /** Whether another server could run it after this one: it is saved to the store, or its provider keeps it. */
  get outlivesServer(): boolean {
    return this.durable || this.facts.residence === "provider";
  }
}

function shortText(text: string): string {
  const line = text.split("\n")[0] ?? "";
  return line.length > SHOWN_COMMAND || line !== text ? `${line.slice(0, SHOWN_COMMAND)}…` : line;
}

/** The live sandbox behind the handle that the manager returned. */
export function live(sandbox: Sandbox): LiveSandbox {
  if (sandbox instanceof LiveSandbox) return sandbox;
  throw new TypeError("This sandbox was not created by this manager.");
}
