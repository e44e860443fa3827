import { SandboxerError, type Head } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import type { Clock } from "../support/clock.ts";
import { Bell } from "./bell.ts";
import type { Notice } from "./core/effects.ts";
import { heldHead } from "./core/instance-state.ts";
import { othersAlive } from "./core/others.ts";
import type { Command } from "./core/messages.ts";
import { leaseSettings, type LeaseSettings } from "./core/settings.ts";
import { LeaseRunner } from "./lease-runner.ts";
import { KnownRecords } from "./known-records.ts";
import { type Advert, decodeRecord, instanceKey, type Known } from "./liveness-record.ts";
import { failureAsError } from "./ownership-errors.ts";

export interface InstancesOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly ttlMs: number;
  /** The URL at which other instances and clients reach this one. */
  readonly url: string | null;
  /** Another instance declared this one dead: it no longer owns anything, and continues under a new id. */
  readonly onFenced: (reason: string) => void;
  /** A renewal or a look at the others failed; the next one comes anyway. */
  readonly onError: (error: unknown) => void;
  /** Tells the instance at that address that one of its sandboxes is requested. An optimisation: it may fail. */
  readonly ring?: (url: string, sandboxId: string) => Promise<void>;
  readonly settings?: Partial<LeaseSettings>;
  /** What it says about itself, so that others can choose it for a sandbox. */
  readonly advert?: Advert | undefined;
}

/** A server process as its liveness record shows it. */
export interface RegisteredServer extends Advert {
  readonly instanceId: string;
  readonly url: string | undefined;
  readonly alive: boolean;
  /** Formats that it can read beyond those that every release can. */
  readonly knows: readonly string[];
  /** Whether it is this server. */
  readonly here: boolean;
}

/** Notifications about the sandboxes that this instance owns. */
export interface OwnershipListener {
  /** Another instance requests a sandbox: release it, or refuse. */
  onWanted?(sandboxId: string, by: string): void;
  /** These sandboxes must not run, change or send output until they thaw. */
  onFreeze?(sandboxIds: readonly string[]): void;
  onThaw?(sandboxIds: readonly string[]): void;
  /** Another instance owns it: end the copy here. */
  onLost?(sandboxId: string, head: Head | undefined): void;
  /** Another instance is dead: nobody runs its sandboxes. */
  onDied?(instanceId: string): void;
  /** This instance was fenced and continues under this id. */
  onLaterId?(instanceId: string): void;
}

export interface OrderOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onWaiting?: ((owner: string, url: string | undefined) => void) | undefined;
}

/** The caller of a command. */
interface Ticket extends Pick<OrderOptions, "onWaiting"> {
  readonly resolve: (head: Head) => void;
  readonly reject: (error: unknown) => void;
  readonly sandboxId: string;
}

/**
 * How long an orderly shutdown waits for a store that does not answer, in ttls. By then the others detect the end
 * themselves.
 */
const CLOSE_WITHIN_TTLS = 1.5;

/**
 * This process among the others that use the store: it renews one small record, and watches those of the others. The id
 * is fresh for each process start, and after each fencing.
 */
export class Instances {
  readonly store: ObjectStore;
  readonly #options: InstancesOptions;
  readonly #runner: LeaseRunner;
  readonly #bell: Bell;
  readonly #records: KnownRecords;
  readonly #tickets = new Map<number, Ticket>();
  readonly #listeners = new Set<OwnershipListener>();
  readonly #acknowledgements = new Map<number, () => void>();
  readonly #registered = Promise.withResolvers<void>();
  #lastTicket = 0;

  private constructor(options: InstancesOptions) {
    const { store, clock, ttlMs, url, onError, advert } = options;
    this.store = store;
    this.#options = options;
    this.#runner = new LeaseRunner({
      store,
      clock,
      settings: leaseSettings(ttlMs, url, { advert, ...options.settings }),
      onNotice: (notice) => this.#onNotice(notice),
      onError,
    });
    this.#bell = new Bell(store, clock, this.#runner);
    this.#records = new KnownRecords(store);
  }

  /** Registers this process; from then on it renews and watches until {@link close}. */
  static async register(options: InstancesOptions): Promise<Instances> {
    const instances = new Instances(options);
    instances.#runner.start();
    await instances.#registered.promise;
    void instances.#bell.listen();
    return instances;
  }

  get instanceId(): string {
    return this.#runner.state.instanceId;
  }

  /** Whether held sandboxes must not run, change or send output now. Check before each emission. */
  get frozen(): boolean {
    return this.#runner.frozen;
  }

  /** Why it is {@link frozen}, for people; undefined: it is not. */
  get frozenReason(): string | undefined {
    return this.#runner.frozenReason;
  }

  /** The ids of the other live servers as this one has seen them at its last look. Reads nothing. */
  get liveOthers(): readonly string[] {
    return othersAlive(this.#runner.state.others);
  }

  /** Whether this server has seen a dead one. */
  get knowsDead(): boolean {
    return this.#runner.state.others.dead.size > 0;
  }

  /** Whether this server has seen that another one is dead. Reads nothing, and learns it a look later than the store. */
  isKnownDead(instanceId: string): boolean {
    return this.#runner.state.others.dead.has(instanceId);
  }

  /** Replaces what this server says about itself. Others read it after its next renewal. */
  advertise(advert: Advert): void {
    this.#runner.tell({ kind: "advertise", advert });
  }

  held(sandboxId: string): Head | undefined {
    return heldHead(this.#runner.state, sandboxId);
  }

  /** Whether the record of an instance says dead, or is missing. */
  async isDead(instanceId: string): Promise<boolean> {
    const cell = await this.store.readCell(instanceKey(instanceId));
    if (cell !== undefined) return decodeRecord(cell.body)?.dead === true;
    await this.markDead(instanceId);
    return true;
  }

  /** The address of a live instance, if it has one. */
  async urlOf(instanceId: string): Promise<string | undefined> {
    const cell = await this.store.readCell(instanceKey(instanceId));
    const record = cell === undefined ? undefined : decodeRecord(cell.body);
    return record === undefined || record.dead === true ? undefined : (record.url ?? undefined);
  }

  /** Every server that has registered with the store. A renewal changes nothing here: records are read once. */
  async servers(): Promise<readonly RegisteredServer[]> {
    const servers: RegisteredServer[] = [];
    for (const [instanceId, record] of await this.#records.look()) {
      const alive = record.dead !== true && !this.#runner.state.others.dead.has(instanceId);
      const { url = null, knows = [], labels, machines } = record.dead === true ? {} : record;
      const here = instanceId === this.instanceId;
      servers.push({ instanceId, url: url ?? undefined, alive, knows, here, labels, machines });
    }
    return servers;
  }

  /** Whether all live servers can read it. */
  async allKnow(what: Known): Promise<boolean> {
    return (await this.servers()).every(({ alive, knows }) => !alive || knows.includes(what));
  }

  /** Declares an instance dead whatever its record says, because the lock of its run directory is free. */
  async markDead(instanceId: string): Promise<void> {
    await this.#acknowledged((ticket) => this.#runner.tell({ kind: "bury", instanceId, ticket }));
  }

  listen(listener: OwnershipListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Another server said, by any channel, that it requests a sandbox of this one. */
  rung(sandboxId?: string): void {
    this.#runner.tell({ kind: "rung", sandboxId });
  }

  async order(sandboxId: string, command: Command, { signal, onWaiting }: OrderOptions): Promise<Head> {
    signal?.throwIfAborted();
    const number = ++this.#lastTicket;
    const { promise, resolve, reject } = Promise.withResolvers<Head>();
    this.#tickets.set(number, { resolve, reject, onWaiting, sandboxId });
    const onAbort = (): void => {
      if (this.#takeTicket(number) === undefined) return;
      reject(signal?.reason as Error);
      this.#runner.tell({ kind: "abandon", sandboxId, ticket: number });
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    const wantedBy = command.kind === "release" ? this.held(sandboxId)?.want?.instance_id : undefined;
    this.#runner.tell({ kind: "command", sandboxId, ticket: number, command });
    try {
      const head = await promise;
      if (wantedBy !== undefined) void this.#ringBack(wantedBy, sandboxId);
      return head;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  forget(sandboxId: string): void {
    this.#runner.tell({ kind: "forget", sandboxId });
  }

  /** Orderly shutdown: the record says dead at once, so that nobody waits for what this instance may still own. */
  async close(): Promise<void> {
    if (this.#runner.stopped) return;
    const { clock, ttlMs } = this.#options;
    const closed = new AbortController();
    await Promise.race([
      this.#acknowledged((ticket) => this.#runner.tell({ kind: "close", ticket })),
      clock.sleep(CLOSE_WITHIN_TTLS * ttlMs, closed.signal).catch(() => {}),
    ]);
    closed.abort();
    this.#runner.stop();
    const error = new SandboxerError("draining", "The server is shutting down.");
    for (const ticket of this.#tickets.values()) ticket.reject(error);
    this.#tickets.clear();
  }

  /** Once. */
  #takeTicket(number: number): Ticket | undefined {
    const ticket = this.#tickets.get(number);
    this.#tickets.delete(number);
    return ticket;
  }

  async #acknowledged(tell: (ticket: number) => void): Promise<void> {
    const number = ++this.#lastTicket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#acknowledgements.set(number, resolve);
    tell(number);
    await promise;
  }

  #onNotice(notice: Notice): void {
    switch (notice.kind) {
      case "answered":
        return this.#takeTicket(notice.ticket)?.resolve(notice.head);
      case "failed": {
        const ticket = this.#takeTicket(notice.ticket);
        return ticket?.reject(failureAsError(ticket.sandboxId, notice.failure));
      }
      case "waiting":
        this.#tickets.get(notice.ticket)?.onWaiting?.(notice.owner, notice.url);
        return this.#ringFor(notice.ticket, notice.owner, notice.url, notice.sandboxId);
      case "buried":
      case "closed":
        this.#acknowledgements.get(notice.ticket)?.();
        this.#acknowledgements.delete(notice.ticket);
        return;
      case "died":
        for (const listener of this.#listeners) listener.onDied?.(notice.instanceId);
        return;
      case "registered":
        for (const listener of this.#listeners) listener.onLaterId?.(notice.instanceId);
        return this.#registered.resolve();
      case "fenced":
        this.#options.onFenced(notice.reason);
        // Notifications about the old life come first.
        return queueMicrotask(() => this.#runner.start());
      case "wanted":
        for (const listener of this.#listeners) listener.onWanted?.(notice.sandboxId, notice.by);
        return;
      case "frozen":
        for (const listener of this.#listeners) listener.onFreeze?.(notice.sandboxIds);
        return;
      case "thawed":
        for (const listener of this.#listeners) listener.onThaw?.(notice.sandboxIds);
        return;
      case "lost":
        for (const listener of this.#listeners) listener.onLost?.(notice.sandboxId, notice.head);
        return;
    }
  }

  /** A claim that waits for a sandbox need not wait for its next look. Nothing depends on it. */
  async #ringBack(instanceId: string, sandboxId: string): Promise<void> {
    try {
      const url = await this.urlOf(instanceId);
      if (url !== undefined) await this.#options.ring?.(url, sandboxId);
    } catch {
      // The owner looks by itself.
    }
  }

  #ringFor(ticket: number, owner: string, url: string | undefined, sandboxId: string): void {
    if (url !== undefined) void this.#options.ring?.(url, sandboxId).catch(() => {});
    this.#bell.ring(owner, sandboxId, () => this.#tickets.get(ticket) !== undefined);
  }
}
