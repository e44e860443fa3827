import { isSandboxId, SandboxerError, type Head, type MaxLoss, type SandboxState } from "@sandboxer/protocol";
import { backendNamed } from "../profiles/profile-backends.ts";
import type { SandboxBackend } from "../backends/backend.ts";
import type { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import { leavesNothing } from "../lease/stored-head.ts";
import type { ProfileCatalog } from "../profiles/profile-catalog.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { Clock } from "../support/clock.ts";
import { KeyedQueue } from "../support/serial-queue.ts";
import { unlessAborted } from "../support/unless-aborted.ts";
import { RecentHandoffs } from "./ownership/recent-handoffs.ts";
import { OutputBudget } from "./processes/output-budget.ts";
import { Proofs } from "./saving/proofs.ts";
import type { DurableStore } from "./durable-store.ts";
import { EventLog } from "./observing/events/event-log.ts";
import { ExecutionEvents } from "./observing/events/execution-events.ts";
import type { Peers } from "./ownership/peers.ts";
import { checkMaximum, checkMemory, type ResourceLimits } from "./resource-limits.ts";
import type { ScrubSettings } from "./observing/integrity/integrity-context.ts";
import type { LiveSandbox, SandboxFacts } from "./live-sandbox.ts";
import type { Observer } from "./observing/observer.ts";
import { Operations } from "./observing/operations/operations.ts";

/** How long whoever was admitted waits for a test restore that has to end first. */
const LEAVING_MS = 10_000;

const MAX_COLLECTED_BYTES = 256 * 1024 * 1024;

export interface ManagerOptions {
  readonly backends: ReadonlyMap<string, SandboxBackend>;
  readonly defaultBackend: string;
  readonly profiles: ProfileCatalog;
  readonly secrets: SecretResolver;
  /** Tells the sandboxes of this installation from those of others at the same provider. */
  readonly installation: string;
  /** How long a sandbox that was stopped, and has a key, is there to be taken up again. */
  readonly resumeTtlMs: number;
  readonly durable: DurableStore;
  /** Where this server can be reached. */
  readonly url?: string;
  /** The other servers of the store; absent: none can be called. */
  readonly peers?: Peers;
  readonly clock: Clock;
  readonly observer: Observer;
  /** For saves on their way to the store; on the volume of the sandboxes' files. */
  readonly workDirectory: string;
  readonly maxSandboxes: number;
  /** What sandboxes may ask for; absent: whatever they like. */
  readonly resourceLimits?: ResourceLimits;
  /** The memory for output that is collected for answers; absent: 256 MiB. */
  readonly maxCollectedBytes?: number;
  readonly defaultIdleTimeoutMs: number;
  /** For sandboxes that can be saved and do not say; absent: nothing is promised. */
  readonly defaultMaxLoss?: MaxLoss | undefined;
  /** Whether each snapshot that is taken here is restored once, by way of trial; absent: no. */
  readonly proveSnapshots?: boolean;
  /** How often the server looks by itself whether all that is stored is whole, and how fast; absent: never. */
  readonly scrub?: ScrubSettings | undefined;
  /** How long a newcomer waits for the server that has a sandbox to give it up. */
  readonly handoffTimeoutMs: number;
  /** How long a drain waits for a store that does not take the sandboxes; absent: each is tried once. */
  readonly drainTimeoutMs?: number;
}

/** What the use cases share: the sandboxes of this server, and what they are made with. */
export class ManagerContext {
  readonly options: ManagerOptions;
  readonly sandboxes = new Map<string, LiveSandbox>();
  /** Sandboxes that are on their way from the store, from before they have a place among the others. */
  readonly restoring = new Set<string>();
  /** Test restores of snapshots. */
  readonly proofs = new Proofs();
  /** The memory for output that is collected for answers. */
  readonly collected: OutputBudget;
  /** Sandboxes that other servers have asked for and were given. */
  readonly recentHandoffs: RecentHandoffs;
  /** Work that goes on behind the answers: what is told apart, but must end before the server does. */
  readonly background = new Set<Promise<unknown>>();
  readonly events: EventLog;
  /** What is told of programs that start and end. */
  readonly executions: ExecutionEvents;
  readonly operations: Operations;
  /**
   * By sandbox id: taking a sandbox over that is not here, changing what is stored of it and destroying that exclude one
   * another. Each of them claims the head, and a claim of what is held already is granted.
   */
  readonly taking = new KeyedQueue();
  /** Who asks for the same key waits for who asked before. */
  readonly keys = new KeyedQueue();
  /** By sandbox id: checkpoints that lie on this machine are brought to the store one after the other. */
  readonly publishing = new KeyedQueue();
  draining = false;
  /** Aborted when the drain begins. */
  readonly ending = new AbortController();

  constructor(options: ManagerOptions) {
    this.options = options;
    this.recentHandoffs = new RecentHandoffs(options.clock);
    this.collected = new OutputBudget(options.maxCollectedBytes ?? MAX_COLLECTED_BYTES);
    this.events = new EventLog(options.clock);
    this.executions = new ExecutionEvents(options.clock, this.events);
    this.operations = new Operations(options.clock, this.events);
  }

  get nowMs(): number {
    return this.options.clock.monotonicMs();
  }

  backend(name: string): SandboxBackend {
    const backend = this.options.backends.get(backendNamed(name));
    if (backend !== undefined) return backend;
    const known = [...this.options.backends.keys()].join(", ");
    throw new SandboxerError("bad_request", `This server has no backend ${JSON.stringify(name)}; it has ${known}.`);
  }

  get durable(): DurableStore {
    return this.options.durable;
  }

  /** The head of a sandbox that is there, or was; undefined also for what is no id. */
  async storedHead(sandboxId: string): Promise<Head | undefined> {
    if (!isSandboxId(sandboxId)) return undefined;
    const head = await this.durable.ownership.read(sandboxId);
    return head?.owner === null && head.state !== "deleted" && leavesNothing(head) ? undefined : head;
  }

  get snapshots(): SnapshotRepository {
    return this.durable.snapshots;
  }

  /** Takes a place among the sandboxes of this server, or says that there is none. */
  admit(sandbox: LiveSandbox): void {
    if (this.draining) throw new SandboxerError("draining", "The server is shutting down.");
    this.checkResources(sandbox.facts);
    if (this.sandboxes.size + this.proofs.size >= this.options.maxSandboxes) this.proofs.giveWay();
    if (this.sandboxes.size >= this.options.maxSandboxes) {
      throw new SandboxerError(
        "limit_reached",
        `The server runs ${this.sandboxes.size} sandboxes, which is its limit.`,
      );
    }
    this.sandboxes.set(sandbox.id, sandbox);
    this.#tellState(sandbox.id, undefined, sandbox.state);
  }

  /** Refuses more than one sandbox may have, and more memory than is free beside the sandboxes that are here. */
  checkResources({ backend, spec }: Pick<SandboxFacts, "backend" | "spec">): void {
    const limits = this.options.resourceLimits;
    if (limits === undefined) return;
    const asking = { backend: this.backend(backend), spec };
    checkMaximum(limits, asking);
    const others = [...this.sandboxes.values()].map(({ facts }) => ({
      backend: this.backend(facts.backend),
      spec: facts.spec,
    }));
    checkMemory(limits, asking, others);
  }

  /** Waits, though not for ever, until a test restore that gave way to one that was admitted has ended. */
  async hasPlace(signal: AbortSignal | undefined): Promise<void> {
    const { gone } = this.proofs;
    if (gone === undefined) return;
    const over = new AbortController();
    const late = this.options.clock.sleep(LEAVING_MS, over.signal).catch(() => {});
    await unlessAborted(Promise.race([gone, late]), signal).finally(() => over.abort());
  }

  /** For {@link LiveSandbox}: a sandbox that is gone leaves the table in the same step. */
  onMove(sandboxId: string): (from: SandboxState, to: SandboxState) => void {
    return (from, to) => {
      if (to === "gone") this.sandboxes.delete(sandboxId);
      this.#tellState(sandboxId, from, to);
    };
  }

  #tellState(sandboxId: string, from: SandboxState | undefined, to: SandboxState): void {
    this.options.observer.state(sandboxId, from, to);
    this.events.append({ type: "sandbox.state", sandboxId, data: { from: from ?? null, to } });
  }

  /** Lets work go on that nobody waits for; its failure is a problem to be reported. */
  inBackground(what: string, work: Promise<unknown>): void {
    this.untilEnded(this.reported(what, work));
  }

  /** A server that ends waits for the end of this work, however that goes; who began it waits for it, too. */
  untilEnded(work: Promise<unknown>): void {
    const ended = work.catch(() => {});
    this.background.add(ended);
    void ended.finally(() => this.background.delete(ended));
  }

  /** Waits for work whose failure changes nothing for the caller, and is a problem to be reported. */
  async reported(what: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error: unknown) => this.options.observer.problem(what, { error }));
  }
}
