import type { SandboxerError } from "@sandboxer/protocol";
import type { SandboxEnd } from "../backend.ts";
import { SerialQueue } from "../../support/serial-queue.ts";
import { sandboxEnded } from "../sandbox-ended.ts";

/** How the provider pauses and resumes everything inside. */
export interface Standstill {
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

/**
 * Whether a sandbox runs, is frozen or has ended. Calls that need something inside wait while it is frozen; changes run
 * one after the other; calls on an ended one fail with its reason.
 */
export class SandboxLife {
  readonly ended: Promise<SandboxEnd>;
  readonly #standstill: Standstill;
  readonly #gate = new PauseGate();
  readonly #changes = new SerialQueue();
  readonly #ending = Promise.withResolvers<SandboxEnd>();
  #end: SandboxEnd | undefined;

  constructor(standstill: Standstill) {
    this.#standstill = standstill;
    this.ended = this.#ending.promise;
  }

  get paused(): boolean {
    return this.#gate.paused;
  }

  get over(): boolean {
    return this.#end !== undefined;
  }

  /** The error of calls on an ended sandbox. */
  failure(): SandboxerError | undefined {
    return this.#end === undefined ? undefined : sandboxEnded(this.#end);
  }

  refuseEnded(): void {
    if (this.#end !== undefined) throw sandboxEnded(this.#end);
  }

  /** Something inside can be asked. */
  async ready(): Promise<void> {
    this.refuseEnded();
    await this.#gate.passage();
    this.refuseEnded();
  }

  change<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#changes.run(work);
  }

  freeze(): Promise<void> {
    return this.#changes.run(() => this.#freeze());
  }

  thaw(): Promise<void> {
    return this.#changes.run(() => this.#thaw());
  }

  /** A sandbox that is to be paused is frozen from before the save on, unless that fails. */
  save<Result>({ leaveRunning }: { readonly leaveRunning: boolean }, work: () => Promise<Result>): Promise<Result> {
    return this.#changes.run(async () => {
      this.refuseEnded();
      const wasPaused = this.#gate.paused;
      if (!leaveRunning && !wasPaused) await this.#freeze();
      try {
        return await work();
      } catch (thrown) {
        if (!wasPaused && this.#gate.paused) await this.#thaw();
        throw thrown;
      }
    });
  }

  /** The first end counts. Returns the error of later calls; undefined if it had already ended. */
  finish(end: SandboxEnd): SandboxerError | undefined {
    if (this.#end !== undefined) return undefined;
    this.#end = end;
    this.#gate.open();
    this.#ending.resolve(end);
    return sandboxEnded(end);
  }

  async #freeze(): Promise<void> {
    this.refuseEnded();
    if (this.#gate.paused) return;
    this.#gate.close();
    try {
      await this.#standstill.freeze();
    } catch (thrown) {
      this.#gate.open();
      throw thrown;
    }
  }

  async #thaw(): Promise<void> {
    this.refuseEnded();
    if (!this.#gate.paused) return;
    await this.#standstill.thaw();
    this.#gate.open();
  }
}

/** Calls that need something inside wait here while the sandbox is paused. */
class PauseGate {
  #closed: PromiseWithResolvers<void> | undefined;

  get paused(): boolean {
    return this.#closed !== undefined;
  }

  close(): void {
    this.#closed ??= Promise.withResolvers<void>();
  }

  open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
  }

  async passage(): Promise<void> {
    while (this.#closed !== undefined) await this.#closed.promise;
  }
}
