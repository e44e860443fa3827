import {
  isSandboxId,
  SandboxerError,
  type Head,
  type MaxLoss,
  type NetworkPolicy,
  type SandboxState,
  type ServerLabels,
} from "@sandboxer/protocol";
import { backendNamed } from "../profiles/profile-backends.ts";
import type { SandboxBackend } from "../backends/backend.ts";
import type { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import type { ImageLibrary } from "../images/image-library.ts";
import { Outside } from "../egress/outside.ts";
import { leavesNothing } from "../lease/stored-head.ts";
import type { ProfileCatalog } from "../profiles/profile-catalog.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { Clock } from "../support/clock.ts";
import { KeyedQueue } from "../support/serial-queue.ts";
import { unlessAborted } from "../support/unless-aborted.ts";
import { checkLabels } from "./ownership/affinity.ts";
import { AcceptedSandboxes } from "./ownership/accepted-sandboxes.ts";
import { RecentHandoffs } from "./ownership/recent-handoffs.ts";
import { OutputBudget } from "./processes/output-budget.ts";
import { Proofs } from "./saving/proofs.ts";
import type { DurableStore } from "./durable-store.ts";
import { StoredTimelines } from "./observing/events/stored-timeline.ts";
import { Timelines } from "./observing/events/timelines.ts";
import { EventLog } from "./observing/events/event-log.ts";
import { ExecutionEvents } from "./observing/events/execution-events.ts";
import { RefusalLog } from "./network/refusal-log.ts";
import type { Peers, PeerTls, Room } from "./ownership/peers.ts";
import { type Asking, checkFree, checkMaximum, freeResources, type ResourceLimits } from "./resource-limits.ts";
import type { ScrubSettings } from "./observing/integrity/integrity-context.ts";
import type { LiveSandbox, SandboxFacts } from "./live-sandbox.ts";
import type { Observer } from "./observing/observer.ts";
import { Operations } from "./observing/operations/operations.ts";

/** How long an admitted request waits for a test restore that must end first. */
const LEAVING_MS = 10_000;

const MAX_REFUSAL_LOGS = 10_000;

const MAX_COLLECTED_BYTES = 256 * 1024 * 1024;

export interface ManagerOptions {
  readonly backends: ReadonlyMap<string, SandboxBackend>;
  readonly defaultBackend: string;
  readonly profiles: ProfileCatalog;
  readonly secrets: SecretResolver;
  /** The container images of the default backend; absent: its provider keeps them. */
  readonly images?: ImageLibrary | undefined;
  /** Distinguishes the sandboxes of this installation from those of others at the same provider. */
  readonly installation: string;
  /** How long a stopped sandbox with a key is kept for its next use. */
  readonly resumeTtlMs: number;
  readonly durable: DurableStore;
  /** Facts about this server that its operator chose, for the affinity of sandboxes. */
  readonly labels?: ServerLabels | undefined;
  /** The URL at which this server can be reached. */
  readonly url?: string;
  /** For calls to other servers; undefined: Node's authorities, or plain HTTP. */
  readonly peerTls?: () => PeerTls | undefined;
  /** The other servers of the store; absent: none can be called. */
  readonly peers?: Peers;
  readonly clock: Clock;
  readonly observer: Observer;
  /** Folder for saves on their way to the store, on the volume of the sandboxes' files. */
  readonly workDirectory: string;
  readonly maxSandboxes: number;
  /** How many paused sandboxes are resumed at once for requests to their ports; absent: one for each processor. */
  readonly maxWakes?: number | undefined;
  /** Resource limits of sandboxes; absent: no limits. */
  readonly resourceLimits?: ResourceLimits;
  /** The memory for output that is collected for responses; absent: 256 MiB. */
  readonly maxCollectedBytes?: number;
  readonly defaultIdleTimeoutMs: number;
  /** max_loss of sandboxes that can be saved and do not set it; absent: none. */
  readonly defaultMaxLoss?: MaxLoss | undefined;
  /** The policy of sandboxes that do not set it; absent: none. */
  readonly defaultNetwork?: NetworkPolicy;
  /** The destinations that sandboxes may reach; absent: everything but private addresses. */
  readonly outside?: Outside;
  /** Whether each snapshot that is taken here is test-restored; absent: no. */
  readonly proveSnapshots?: boolean;
  /** How often and how fast the server scrubs its store; absent: never. */
  readonly scrub?: ScrubSettings | undefined;
  /** How long to wait for another server to hand off a sandbox. */
  readonly handoffTimeoutMs: number;
  /** How long a drain waits for a store that does not accept the sandboxes; absent: each save is tried once. */
  readonly drainTimeoutMs?: number;
}

/** Shared by the use cases: the sandboxes of this server and the services that they need. */
export class ManagerContext {
  readonly options: ManagerOptions;
  readonly sandboxes = new Map<string, LiveSandbox>();
  /** Sandboxes that are being restored, from before they are in the table of live ones. */
  readonly restoring = new Set<string>();
  /** Sandboxes that this server resumes without a client that asked for it. */
  readonly accepted = new AcceptedSandboxes();
  /** Sandboxes to delete when their lifetime ends, as far as this server knows, with that time. */
  readonly expiring = new Map<string, number>();
  /** Snapshots of forks that are in progress: their sandboxes may not exist yet. */
  readonly forking = new Set<string>();
  /** Sandboxes that take part in a promotion now. */
  readonly promoting = new Set<string>();
  /** Test restores of snapshots. */
  readonly proofs = new Proofs();
  /** The memory for output that is collected for responses. */
  readonly collected: OutputBudget;
  /** Sandboxes that were handed off to other servers a moment ago. */
  readonly recentHandoffs: RecentHandoffs;
  /** Background work that is observed by itself, but must end before the server does. */
  readonly background = new Set<Promise<unknown>>();
  readonly events: EventLog;
  /** The events of each sandbox at all its servers; undefined without a configured store. */
  readonly timelines: Timelines | undefined;
  /** Reports programs that start and end. */
  readonly executions: ExecutionEvents;
  readonly operations: Operations;
  /** The network around this server. */
  readonly outside: Outside;
  readonly #refusals = new Map<string, RefusalLog>();
  /**
   * By sandbox id: restoring a sandbox, changing its stored record and deleting it exclude one another. Each of them
   * claims the head, and claiming a head that this server already holds succeeds.
   */
  readonly taking = new KeyedQueue();
  /** Requests for the same key run one after the other. */
  readonly keys = new KeyedQueue();
  /** By sandbox id: checkpoints that lie on this machine are published one after the other. */
  readonly publishing = new KeyedQueue();
  draining = false;
  /** Aborted when the drain begins. */
  readonly ending = new AbortController();
  /** Aborted when the drain no longer waits for pauses in progress, because the store does not answer. */
  readonly storeSilent = new AbortController();

  constructor(options: ManagerOptions) {
    this.options = options;
    this.recentHandoffs = new RecentHandoffs(options.clock);
    this.collected = new OutputBudget(options.maxCollectedBytes ?? MAX_COLLECTED_BYTES);
    this.events = new EventLog(options.clock);
    this.timelines = options.durable.saves ? this.#openTimelines() : undefined;
    this.outside = options.outside ?? new Outside();
    this.executions = new ExecutionEvents(options.clock, this.events);
    this.operations = new Operations(options.clock, this.events, () => this.durable.ownership.instanceId);
  }

  /** The connections of a sandbox that were refused, also while it is paused. Of many sandboxes the oldest are dropped. */
  refusals(sandboxId: string): RefusalLog {
    const known = this.#refusals.get(sandboxId);
    if (known !== undefined) return known;
    const log = new RefusalLog(this.options.clock, this.events, sandboxId);
    this.#refusals.set(sandboxId, log);
    if (this.#refusals.size > MAX_REFUSAL_LOGS) this.#refusals.delete(this.#refusals.keys().next().value ?? "");
    return log;
  }

  #openTimelines(): Timelines {
    const { ownership } = this.durable;
    return new Timelines({
      log: this.events,
      stored: new StoredTimelines(ownership.instances.store),
      epochOf: (sandboxId) => {
        const head = ownership.held(sandboxId);
        return head === undefined || leavesNothing(head) ? undefined : head.epoch;
      },
      isDeleted: async (sandboxId) => (await ownership.read(sandboxId))?.state === "deleted",
      onProblem: (message, error) => this.options.observer.problem(message, { error }),
    });
  }

  get nowMs(): number {
    return this.options.clock.monotonicMs();
  }

  backend(name: string): SandboxBackend {
    const backend = this.options.backends.get(backendNamed(name));
    if (backend !== undefined) return backend;
    const known = [...this.options.backends.keys()].join(", ");
    throw new SandboxerError("bad_request", `This server has no backend ${JSON.stringify(name)}; it has ${known}.`, {
      details: { misfit: "backend" },
    });
  }

  get durable(): DurableStore {
    return this.options.durable;
  }

  /** The head of a sandbox that exists or existed; undefined also if the text is not an id. */
  async storedHead(sandboxId: string): Promise<Head | undefined> {
    if (!isSandboxId(sandboxId)) return undefined;
    const head = await this.durable.ownership.read(sandboxId);
    return head?.owner === null && head.state !== "deleted" && leavesNothing(head) ? undefined : head;
  }

  get snapshots(): SnapshotRepository {
    return this.durable.snapshots;
  }

  /** Reserves a place among the sandboxes of this server, or throws if it is full. */
  admit(sandbox: LiveSandbox): void {
    if (this.draining) throw new SandboxerError("draining", "The server is shutting down.");
    checkLabels(this.options.labels, sandbox.facts.about.affinity);
    this.accepted.waiting.delete(sandbox.id);
    this.checkResources(sandbox.facts);
    if (this.#taken + this.proofs.size >= this.options.maxSandboxes) this.proofs.giveWay();
    this.#checkPlaces();
    this.sandboxes.set(sandbox.id, sandbox);
    this.#tellState(sandbox.id, undefined, sandbox.state);
  }

  /** Refuses a sandbox that this server has no room for, or not the labels. */
  checkRoom(facts: Pick<SandboxFacts, "about" | "backend" | "spec">): void {
    checkLabels(this.options.labels, facts.about.affinity);
    this.checkResources(facts);
    this.#checkPlaces();
  }

  #checkPlaces(): void {
    if (this.#taken < this.options.maxSandboxes) return;
    throw new SandboxerError("limit_reached", `The server runs ${this.#taken} sandboxes, which is its limit.`, {
      details: { full: "places" },
    });
  }

  /** With the reserved places. */
  get #taken(): number {
    return this.sandboxes.size + this.accepted.waiting.size;
  }

  /** The room for more sandboxes. */
  room(): Room {
    const limits = this.options.resourceLimits;
    const places = Math.max(0, this.options.maxSandboxes - this.#taken);
    if (limits === undefined) return { places, memory_bytes: null, cpus: null };
    return { places, ...freeResources(limits, this.#asked()) };
  }

  #asked(): Asking[] {
    const running = [...this.sandboxes.values()].map(({ facts }) => facts);
    return [...running, ...this.accepted.waiting.values()].map(({ backend, spec }) => ({
      backend: this.backend(backend),
      spec,
    }));
  }

  /** Refuses more than one sandbox may have, and more memory or CPUs than the other sandboxes leave free. */
  checkResources({ backend, spec }: Pick<SandboxFacts, "backend" | "spec">): void {
    const limits = this.options.resourceLimits;
    if (limits === undefined) return;
    const asking = { backend: this.backend(backend), spec };
    checkMaximum(limits, asking);
    checkFree(limits, asking, this.#asked());
  }

  /** Waits, with a limit, until a test restore that was cancelled for an admitted request has ended. */
  async hasPlace(signal: AbortSignal | undefined): Promise<void> {
    const { gone } = this.proofs;
    if (gone === undefined) return;
    const over = new AbortController();
    const late = this.options.clock.sleep(LEAVING_MS, over.signal).catch(() => {});
    await unlessAborted(Promise.race([gone, late]), signal).finally(() => over.abort());
  }

  /** For {@link LiveSandbox}: a sandbox that ends leaves the table in the same step. */
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

  /** Runs work in the background; a failure is reported as a problem. */
  inBackground(what: string, work: Promise<unknown>): void {
    this.untilEnded(this.reported(what, work));
  }

  /** A stopping server waits for the end of this work, whatever its result; the caller waits for it too. */
  untilEnded(work: Promise<unknown>): void {
    const ended = work.catch(() => {});
    this.background.add(ended);
    void ended.finally(() => this.background.delete(ended));
  }

  /** Waits for work whose failure does not matter to the caller; a failure is reported as a problem. */
  async reported(what: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error: unknown) => this.options.observer.problem(what, { error }));
  }
}
