import { availableParallelism } from "node:os";
import { type EventRecord, isSandboxId, type SandboxerError } from "@sandboxer/protocol";
import type { BodyOf, Routes, CreateRequestBody, CreationMessage, SandboxRecord } from "@sandboxer/protocol";
import type { SandboxBackend } from "../backends/backend.ts";
import { countAtRisk, countDozing, countStates, summaryOf, listBackends } from "./observing/census.ts";
import { acquireSandbox, type AcquiredSandbox } from "./lifecycle/acquire.ts";
import { amendSandbox } from "./lifecycle/amend.ts";
import { createFromRequest, type CreatedSandbox, type CreateRequest } from "./lifecycle/create.ts";
import { describeLive, describeStored, findSandbox } from "./observing/describe.ts";
import { destroyById } from "./lifecycle/destroy-by-id.ts";
import { checkpointSandbox } from "./saving/checkpoint.ts";
import { keepPromises } from "./saving/promise-keeper.ts";
import { deleteExpiredSandboxes, expireSandboxes } from "./lifecycle/expire.ts";
import { handOffSandbox } from "./ownership/handoff.ts";
import { ImageVerbs } from "./observing/image-verbs.ts";
import { IntegrityVerbs } from "./observing/integrity/integrity-verbs.ts";
import { conditionFor, listInstances } from "./observing/list-instances.ts";
import { listSandboxIds, listSandboxPage } from "./observing/list-sandboxes.ts";
import { describeNetwork } from "./network/describe-network.ts";
import { otherServer, ownerElsewhere } from "./ownership/owner-elsewhere.ts";
import { untilArrived } from "./ownership/until-arrived.ts";
import { PlacingVerbs } from "./ownership/placing-verbs.ts";
import { acceptSandbox } from "./ownership/accept-sandbox.ts";
import type { LeftSandbox } from "./ownership/peers.ts";
import { restartLostSandboxes } from "./ownership/restart-lost.ts";
import { settleOrphans } from "./ownership/settle-orphans.ts";
import { previewRetention } from "./saving/preview-retention.ts";
import { pauseSandbox, type PauseOptions } from "./lifecycle/pause.ts";
import { reachabilityOf } from "./observing/reachability.ts";
import { recreateSandbox } from "./lifecycle/recreate.ts";
import { resumeSandbox } from "./lifecycle/resume.ts";
import type { VerbOptions } from "./observing/operations/tracked.ts";
import { attachSandbox } from "./ownership/attach.ts";
import { ManagerContext, type ManagerOptions } from "./context.ts";
import { destroySandbox } from "./lifecycle/destroy.ts";
import { detachClient } from "./lifecycle/disconnect.ts";
import type { UnsavedSandbox } from "./lifecycle/drain/drain.ts";
import { drainSandboxes } from "./lifecycle/drain/drain-sandboxes.ts";
import { discardLostSandbox, leaseLost, reclaim } from "./lifecycle/end-of-sandbox.ts";
import { publishLeftBehind } from "./ownership/publish-unpublished.ts";
import { freezeSandboxes, thawSandboxes, untilThawed } from "./ownership/freeze.ts";
import { yieldSandbox } from "./ownership/yield.ts";
import { startExecution } from "./processes/start-process.ts";
import { PortVerbs } from "./ports/port-verbs.ts";
import { giveHomes } from "./files/give-home.ts";
import { FileVerbs } from "./files/file-verbs.ts";
import { reapIdleSandboxes } from "./lifecycle/idle.ts";
import { ProcessVerbs } from "./processes/process-verbs.ts";
import { InterpreterVerbs } from "./interpreter/interpreter-verbs.ts";
import { live, type LiveSandbox } from "./live-sandbox.ts";
import type { GivenOut, Sandbox } from "./sandbox.ts";
import { stopPreparing, warmPoolRecord } from "./lifecycle/warm-pool.ts";
import { runningSandbox } from "./running.ts";
import { Usage } from "./observing/usage/usage-records.ts";
import { type CopiesElsewhere, type CopyElsewhere, forkSandbox } from "./snapshots/fork.ts";
import { promoteSandbox } from "./snapshots/promote.ts";
import { rewindSandbox } from "./snapshots/rewind.ts";
import { moveSandbox } from "./snapshots/portable/move.ts";
import { SnapshotVerbs } from "./snapshots/snapshot-verbs.ts";
import { Room } from "./room.ts";
import { answerWithin } from "../support/answer-within.ts";

/** How long the last events of sandboxes may take to be stored when the server ends. */
const FLUSH_MS = 5_000;

/** A verb whose result exposes only the public part of a sandbox. */
type Door<Verb extends (context: never, ...given: never[]) => unknown, Result> =
  Parameters<Verb> extends [unknown, ...infer Given] ? (...given: Given) => Promise<Result> : never;

/** The only writer of sandbox state on a server. Each verb is a file of its own; this class lists them. */
export class SandboxManager extends Room<ManagerContext> {
  /** Processes started over HTTP. */
  readonly processes = new ProcessVerbs(this.context);
  /** Interpreters that keep their variables. */
  readonly interpreter = new InterpreterVerbs(this.context);
  readonly files = new FileVerbs(this.context);
  /** Connections to programs inside. */
  readonly ports = new PortVerbs(this.context, this.context.options.maxWakes ?? Math.max(2, availableParallelism()));
  /** Sampled resource usage. */
  readonly usage = new Usage(this.context);
  /** Integrity checks of stored data. */
  readonly integrity = new IntegrityVerbs(this.context);
  readonly snapshots = new SnapshotVerbs(this.context);
  readonly images = new ImageVerbs(this.context);
  /** Running and finished operations. */
  readonly operations = this.context.operations;
  readonly events = this.context.events;

  /** The events of one sandbox after a cursor, wherever it was. */
  async timeline(sandboxId: string, cursor: string | undefined): Promise<readonly EventRecord[]> {
    const { timelines, events } = this.context;
    if (timelines !== undefined && isSandboxId(sandboxId)) return await timelines.after(sandboxId, cursor);
    return events.after(cursor).filter(({ sandbox_id }) => sandbox_id === sandboxId);
  }

  readonly profiles = this.context.options.profiles;
  readonly #stopReaping = reapIdleSandboxes(this.context);
  readonly #stopExpiring = deleteExpiredSandboxes(this.context);
  readonly #stopKeeping = keepPromises(this.context);
  readonly #stopRestarting = restartLostSandboxes(this.context);
  readonly #stopListening = this.#listen();

  constructor(options: ManagerOptions) {
    super(new ManagerContext(options));
  }

  get draining(): boolean {
    return this.context.draining;
  }

  /** The present id of this server: it changes when other servers declared it dead. */
  get instanceId(): string {
    return this.context.durable.ownership.instanceId;
  }

  /** Whether saves and restores are possible at all. */
  get hasStore(): boolean {
    return this.context.durable.saves;
  }

  /** The epoch of this server's ownership of a sandbox; undefined if this server does not own it. */
  epochOf(sandboxId: string): number | undefined {
    return this.context.durable.ownership.held(sandboxId)?.epoch;
  }

  readonly states = this.verb(countStates);

  /** Counts against the limit: sandboxes that are being created and test restores are included. */
  get placesTaken(): number {
    return this.context.sandboxes.size + this.context.proofs.size;
  }

  /** How many sandboxes do not meet their max_loss. */
  readonly atRisk = this.verb(countAtRisk);

  /** The warm pool of the default backend; undefined if it has none. */
  readonly warmPool = this.verb(warmPoolRecord);

  /** Running sandboxes that use no CPU. */
  readonly dozingCount = this.verb(countDozing);
  readonly summary = this.verb(summaryOf);
  readonly describe = this.verbOn(describeLive);
  readonly find = this.verb(findSandbox);

  /**
   * The server that owns a sandbox which is not on this server, for callers who may use the sandbox; undefined: none
   * can be asked.
   */
  readonly ownerElsewhere = this.verb(ownerElsewhere);
  readonly otherServer = this.verb(otherServer);
  readonly untilArrived = this.verb(untilArrived);
  readonly list = this.verb(listSandboxPage);
  readonly ids = this.verb(listSandboxIds);
  readonly previewRetention = this.verb(previewRetention);
  readonly backends = this.verb(listBackends);

  /** The capabilities of a backend of this server, and the default limits of its sandboxes. Absent: the default one. */
  backendFacts(name?: string): Partial<Pick<SandboxBackend, "capabilities" | "defaultResources">> {
    const { backends, defaultBackend } = this.context.options;
    return backends.get(name ?? defaultBackend) ?? {};
  }

  /** Facts about this server for other servers. */
  readonly condition = this.verb(conditionFor);
  readonly instances = this.verb(listInstances);

  /** Whether another server is dead, by its record in the store. */
  async isDead(instanceId: string): Promise<boolean> {
    return await this.context.durable.ownership.isDead(instanceId);
  }

  /** Whether another server is dead, as of the last look at it. */
  isKnownDead(instanceId: string): boolean {
    return this.context.durable.ownership.instances.isKnownDead(instanceId);
  }

  /** Where a sandbox may run that this server has no room for, or cannot run. */
  readonly placing = new PlacingVerbs(this.context);

  create(body: CreateRequestBody, options?: VerbOptions): Promise<GivenOut<CreatedSandbox>> {
    return createFromRequest(this.context, body, "durable", {}, options);
  }

  /** The sandbox with a key: the existing one, one restored from its newest snapshot, or a new one. */
  readonly acquire: Door<typeof acquireSandbox, GivenOut<AcquiredSandbox>> = this.verb(acquireSandbox);

  /** For the WebSocket protocol; the client is attached to the new sandbox. */
  createFromMessage(
    message: CreationMessage,
    request: Pick<CreateRequest, "client" | "onOwnership">,
    options?: VerbOptions,
  ): Promise<GivenOut<CreatedSandbox>> {
    return createFromRequest(this.context, message, "as asked", request, options);
  }

  readonly attach: Door<typeof attachSandbox, Sandbox> = this.verb(attachSandbox);

  /**
   * The sandbox to work with, which runs here; otherwise throws the reason. With an epoch, only if that is the current
   * one.
   */
  readonly running: Door<typeof runningSandbox, Sandbox> = this.verb(runningSandbox);
  readonly resume: Door<typeof resumeSandbox, Sandbox> = this.verb(resumeSandbox);

  readonly handOff = this.verb(handOffSandbox);

  /** Another server offers a sandbox, which is resumed here soon. Throws if there is no room for it. */
  async accept(left: LeftSandbox): Promise<void> {
    await acceptSandbox(this.context, left);
  }

  readonly amend = this.verb(amendSandbox);
  readonly network = this.verb(describeNetwork);
  readonly expire = this.verb(expireSandboxes);
  readonly recreate = this.verbOn(recreateSandbox);
  readonly reachability = this.verb(reachabilityOf);

  /** Pauses a sandbox: saves it with its executions and stops it here. */
  async pause(sandbox: Sandbox, options?: PauseOptions): Promise<SandboxRecord> {
    const head = await pauseSandbox(this.context, live(sandbox), "request", options);
    return describeStored(this.context, sandbox.id, head);
  }

  /** Saves a sandbox that keeps running; it resumes from this checkpoint if this server dies. */
  async checkpoint(sandbox: Sandbox, options?: VerbOptions): Promise<SandboxRecord> {
    await checkpointSandbox(this.context, live(sandbox), { ...options, reason: "request" });
    return this.describe(sandbox);
  }

  readonly destroyById = this.verb(destroyById);
  readonly detach = this.verbOn(detachClient);
  readonly execute = this.verbOn(startExecution);

  /** Gives users of a fresh sandbox homes where a client expects them. */
  readonly giveHomes = this.verbOn(giveHomes);

  readonly move = this.verbOn(moveSandbox);

  fork(
    sandbox: Sandbox,
    request: BodyOf<Routes["forkSandbox"]>,
    options?: VerbOptions,
  ): Promise<{ snapshotId: string; created: readonly GivenOut<CreatedSandbox>[] }>;
  fork(
    sandbox: Sandbox,
    request: BodyOf<Routes["forkSandbox"]>,
    options: VerbOptions,
    elsewhere: CopiesElsewhere | undefined,
  ): Promise<{ snapshotId: string; created: readonly (GivenOut<CreatedSandbox> | CopyElsewhere)[] }>;
  fork(
    sandbox: Sandbox,
    request: BodyOf<Routes["forkSandbox"]>,
    options?: VerbOptions,
    elsewhere?: CopiesElsewhere,
  ): Promise<{ snapshotId: string; created: readonly (GivenOut<CreatedSandbox> | CopyElsewhere)[] }> {
    return forkSandbox(this.context, live(sandbox), request, options, elsewhere);
  }

  readonly rewind = this.verbOn(rewindSandbox);
  readonly promote = this.verb(promoteSandbox);
  readonly destroy = this.verbOn(destroySandbox);

  /** A client sent something: the sandbox is in use. */
  touch(sandbox: Sandbox): void {
    live(sandbox).touch(this.context.nowMs);
  }

  /** A client's call of this kind begins, which may take long; the returned function ends it. */
  hold(sandbox: Sandbox, what: string): () => void {
    return live(sandbox).hold(() => this.context.nowMs, what);
  }

  countOutput(bytes: number): void {
    this.context.options.observer.output(bytes);
  }

  readonly untilThawed = this.verbOn(untilThawed);

  /** Other servers declared this server dead: it no longer owns anything that it held under a lease. */
  async loseOwnership(error: SandboxerError): Promise<void> {
    const context = this.context;
    // Sandboxes that are being saved or restored check their ownership before they publish or run.
    const running = [...context.sandboxes.values()].filter(({ state }) => state === "running");
    const lose = (sandbox: LiveSandbox): Promise<void> =>
      sandbox.outlivesServer
        ? context.reported("end of a lost sandbox", discardLostSandbox(context, sandbox, error))
        : context.reported("claim of a sandbox that nobody else could run", reclaim(context, sandbox));
    await Promise.all(running.map(lose));
  }

  /** Call it once at the start with the dead servers of this machine: cleans up after them. */
  settleOrphans(dead: ReadonlySet<string>): void {
    if (dead.size > 0) this.context.inBackground("clean-up after dead servers", settleOrphans(this.context, dead));
  }

  /** Call it once at the start: publishes checkpoints that servers of this machine could not publish. */
  publishLeftBehind(): void {
    if (this.hasStore)
      this.context.inBackground("clean-up after other servers on this machine", publishLeftBehind(this.context));
  }

  /** Drains all sandboxes; returns those that the store did not accept. */
  async drain(): Promise<readonly UnsavedSandbox[]> {
    this.#stopReaping();
    this.#stopExpiring();
    this.#stopKeeping();
    this.#stopRestarting();
    this.context.proofs.stop();
    this.usage.stop();
    this.integrity.close();
    const [unsaved] = await Promise.all([drainSandboxes(this.context), stopPreparing(this.context)]);
    this.#stopListening();
    // A store that does not answer must not delay the shutdown.
    const { timelines, options } = this.context;
    if (timelines !== undefined) await answerWithin(options.clock, FLUSH_MS, timelines.flush());
    await this.context.durable.unpublished.close();
    return unsaved;
  }

  /** Reactions to requests of other servers. */
  #listen(): () => void {
    const context = this.context;
    return context.durable.ownership.instances.listen({
      onWanted: (sandboxId) => context.inBackground("handoff of a sandbox", yieldSandbox(context, sandboxId)),
      onFreeze: (sandboxIds) => freezeSandboxes(context, sandboxIds),
      onThaw: (sandboxIds) => thawSandboxes(context, sandboxIds),
      onLost: (sandboxId) => {
        const sandbox = context.sandboxes.get(sandboxId);
        if (sandbox === undefined) return;
        context.inBackground("end of a lost sandbox", discardLostSandbox(context, sandbox, leaseLost()));
      },
    });
  }
}
