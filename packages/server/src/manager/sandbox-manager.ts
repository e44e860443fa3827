import {
  SandboxerError,
  type CreateRequestBody,
  type CreationMessage,
  type Language,
  type RetentionPreview,
  type SandboxRecord,
  type SandboxState,
} from "@sandboxer/protocol";
import type { ProfileCatalog } from "../profiles/profile-catalog.ts";
import type { CallOptions } from "../support/call-options.ts";
import { countAtRisk, countDozing, countStates, summaryOf, type ServerSummary } from "./observing/census.ts";
import { acquireSandbox, type AcquiredSandbox } from "./lifecycle/acquire.ts";
import { amendSandbox, type Amendments } from "./lifecycle/amend.ts";
import { createFromRequest } from "./lifecycle/create.ts";
import { describeLive, describeStored } from "./observing/describe.ts";
import { destroyById } from "./lifecycle/destroy-by-id.ts";
import { checkpointSandbox } from "./saving/checkpoint.ts";
import { keepPromises } from "./saving/promise-keeper.ts";
import type { EventLog } from "./observing/events/event-log.ts";
import { expireSandboxes, type Expiry } from "./lifecycle/expire.ts";
import { handOffSandbox, type HandedOff, type HandoffRequest } from "./ownership/handoff.ts";
import { IntegrityVerbs } from "./observing/integrity/integrity-verbs.ts";
import { listBackends, type BackendRecord } from "./observing/list-backends.ts";
import { instanceCondition, listInstances, type InstanceRecord } from "./observing/list-instances.ts";
import { listSandboxPage, type ListPlace, type SandboxFilter, type SandboxPage } from "./observing/list-sandboxes.ts";
import { findSandbox } from "./observing/find-sandbox.ts";
import type { Operations } from "./observing/operations/operations.ts";
import type { InstanceCondition } from "./ownership/peers.ts";
import { otherServer, ownerElsewhere, type OtherServer } from "./ownership/owner-elsewhere.ts";
import { settleOrphans } from "./ownership/settle-orphans.ts";
import { previewRetention, type PreviewedRules } from "./saving/preview-retention.ts";
import { pauseSandbox, type PauseOptions } from "./lifecycle/pause.ts";
import { reachabilityOf, type Reachability } from "./observing/reachability.ts";
import { recreateSandbox } from "./lifecycle/recreate.ts";
import { resumeSandbox, type ResumeRequest } from "./lifecycle/resume.ts";
import type { VerbOptions } from "./observing/operations/tracked.ts";
import { attachSandbox, type AttachRequest } from "./ownership/attach.ts";
import type { SandboxClient } from "./client.ts";
import { ManagerContext, type ManagerOptions } from "./context.ts";
import type { CreatedSandbox, CreateRequest } from "./lifecycle/create.ts";
import { destroySandbox } from "./lifecycle/destroy.ts";
import { detachClient } from "./lifecycle/disconnect.ts";
import type { UnsavedSandbox } from "./lifecycle/drain/drain.ts";
import { drainSandboxes } from "./lifecycle/drain/drain-sandboxes.ts";
import { discardLostSandbox, reclaim } from "./lifecycle/end-of-sandbox.ts";
import { publishLeftBehind } from "./ownership/publish-unpublished.ts";
import { freezeSandboxes, thawSandboxes, untilThawed, type Patience } from "./ownership/freeze.ts";
import { yieldSandbox } from "./ownership/yield.ts";
import type { ManagedProcess } from "./processes/managed-process.ts";
import { startExecution } from "./processes/start-process.ts";
import { FileVerbs } from "./files/file-verbs.ts";
import { reapIdleSandboxes } from "./lifecycle/idle.ts";
import { ProcessVerbs } from "./processes/process-verbs.ts";
import { live, type LiveSandbox } from "./live-sandbox.ts";
import type { GivenOut, Sandbox } from "./sandbox.ts";
import type { Credentials } from "./token.ts";
import { stopPreparing, warmPoolRecord, type WarmPoolRecord } from "./lifecycle/warm-pool.ts";
import { runningSandbox } from "./running.ts";
import { Usage } from "./observing/usage/usage-records.ts";
import { forkSandbox, type ForkRequest } from "./snapshots/fork.ts";
import { rewindSandbox } from "./snapshots/rewind.ts";
import { moveSandbox, type MovedSandbox, type MoveRequest } from "./snapshots/portable/move.ts";
import { SnapshotVerbs } from "./snapshots/snapshot-verbs.ts";

/** The only writer of sandbox state on a server. Each verb is a file of its own; this is the list of them. */
export class SandboxManager {
  readonly #context: ManagerContext;
  /** What is started over HTTP. */
  readonly processes: ProcessVerbs;
  readonly files: FileVerbs;
  /** What they use, sampled. */
  readonly usage: Usage;
  /** Whether what is stored is whole. */
  readonly integrity: IntegrityVerbs;
  readonly snapshots: SnapshotVerbs;
  readonly #stopReaping: () => void;
  readonly #stopKeeping: () => void;
  readonly #stopListening: () => void;

  constructor(options: ManagerOptions) {
    this.#context = new ManagerContext(options);
    this.processes = new ProcessVerbs(this.#context);
    this.files = new FileVerbs(this.#context);
    this.usage = new Usage(this.#context);
    this.integrity = new IntegrityVerbs(this.#context);
    this.snapshots = new SnapshotVerbs(this.#context);
    this.#stopReaping = reapIdleSandboxes(this.#context);
    this.#stopKeeping = keepPromises(this.#context);
    this.#stopListening = this.#listen();
  }

  get draining(): boolean {
    return this.#context.draining;
  }

  /** Whether saves and restores are possible at all. */
  get hasStore(): boolean {
    return this.#context.durable.saves;
  }

  /** The epoch of this server's ownership of a sandbox; undefined for one that is not stored, or not owned here. */
  epochOf(sandboxId: string): number | undefined {
    return this.#context.durable.ownership.held(sandboxId)?.epoch;
  }

  states(): Readonly<Partial<Record<SandboxState, number>>> {
    return countStates(this.#context);
  }

  /** Of the sandboxes that there may be: those that are being made and test restores included. */
  get placesTaken(): number {
    return this.#context.sandboxes.size + this.#context.proofs.size;
  }

  /** How many sandboxes there are of which more could be lost than was promised. */
  get atRisk(): number {
    return countAtRisk(this.#context);
  }

  /** The sandboxes that the default backend has started ahead of the need; undefined: it never does. */
  get warmPool(): WarmPoolRecord | undefined {
    return warmPoolRecord(this.#context);
  }

  /** Those that run and take no processor. */
  get dozingCount(): number {
    return countDozing(this.#context);
  }

  /** What is under way, and what was. */
  get operations(): Operations {
    return this.#context.operations;
  }

  get events(): EventLog {
    return this.#context.events;
  }

  get profiles(): ProfileCatalog {
    return this.#context.options.profiles;
  }

  summary(): ServerSummary {
    return summaryOf(this.#context);
  }

  describe(sandbox: Sandbox): SandboxRecord {
    return describeLive(this.#context, live(sandbox));
  }

  find(sandboxId: string): Promise<SandboxRecord> {
    return findSandbox(this.#context, sandboxId);
  }

  /** The server that has a sandbox which is not here, for those who may use the sandbox; undefined: none can be asked. */
  ownerElsewhere(sandboxId: string, credentials?: Credentials): Promise<OtherServer | undefined> {
    return ownerElsewhere(this.#context, sandboxId, credentials);
  }

  otherServer(instanceId: string): Promise<OtherServer | undefined> {
    return otherServer(this.#context, instanceId);
  }

  list(
    filter: SandboxFilter,
    page: { readonly limit: number; readonly after: ListPlace | undefined },
  ): Promise<SandboxPage> {
    return listSandboxPage(this.#context, filter, page);
  }

  previewRetention(sandboxId: string, rules: PreviewedRules, options?: CallOptions): Promise<RetentionPreview> {
    return previewRetention(this.#context, sandboxId, rules, options);
  }

  backends(): Promise<BackendRecord[]> {
    return listBackends(this.#context);
  }

  /** What this server says of itself to other servers. */
  condition(): InstanceCondition {
    return instanceCondition(this.#context);
  }

  instances(): Promise<InstanceRecord[]> {
    return listInstances(this.#context);
  }

  create(body: CreateRequestBody, options?: VerbOptions): Promise<GivenOut<CreatedSandbox>> {
    return createFromRequest(this.#context, body, "durable", {}, options);
  }

  /** The sandbox with a key: the one that is there, one from its newest snapshot, or a fresh one. */
  acquire(
    body: CreateRequestBody & { readonly key: string },
    options?: VerbOptions,
  ): Promise<GivenOut<AcquiredSandbox>> {
    return acquireSandbox(this.#context, body, options);
  }

  /** For the WebSocket protocol; the client is attached to the new sandbox. */
  createFromMessage(
    message: CreationMessage,
    request: Pick<CreateRequest, "client" | "onOwnership">,
    options?: VerbOptions,
  ): Promise<GivenOut<CreatedSandbox>> {
    return createFromRequest(this.#context, message, "as asked", request, options);
  }

  attach(request: AttachRequest, options?: VerbOptions): Promise<Sandbox> {
    return attachSandbox(this.#context, request, options);
  }

  /** The sandbox to work with, which runs here; else why not. With an epoch, only if that is the present one. */
  running(sandboxId: string, epoch?: number, patience?: Patience): Promise<Sandbox> {
    return runningSandbox(this.#context, sandboxId, epoch, patience);
  }

  resume(request: ResumeRequest, options?: VerbOptions): Promise<Sandbox> {
    return resumeSandbox(this.#context, request, options);
  }

  handOff(request: HandoffRequest): Promise<HandedOff> {
    return handOffSandbox(this.#context, request);
  }

  amend(sandboxId: string, epoch: number | undefined, amendments: Amendments): Promise<SandboxRecord> {
    return amendSandbox(this.#context, sandboxId, epoch, amendments);
  }

  expire(apply: boolean): Promise<Expiry> {
    return expireSandboxes(this.#context, apply);
  }

  recreate(sandbox: Sandbox, options?: VerbOptions): Promise<void> {
    return recreateSandbox(this.#context, live(sandbox), options);
  }

  reachability(sandboxId: string): Promise<Reachability> {
    return reachabilityOf(this.#context, sandboxId);
  }

  /** Saves everything, with what executes, and stops running it here. */
  async pause(sandbox: Sandbox, options?: PauseOptions): Promise<SandboxRecord> {
    const head = await pauseSandbox(this.#context, live(sandbox), "request", options);
    return describeStored(this.#context, sandbox.id, head);
  }

  /** Saves everything; the sandbox keeps running here, and begins with that if this server dies. */
  async checkpoint(sandbox: Sandbox, options?: VerbOptions): Promise<SandboxRecord> {
    await checkpointSandbox(this.#context, live(sandbox), { ...options, reason: "request" });
    return this.describe(sandbox);
  }

  destroyById(sandboxId: string, epoch: number | undefined, options?: VerbOptions): Promise<void> {
    return destroyById(this.#context, sandboxId, epoch, options);
  }

  detach(sandbox: Sandbox, client: SandboxClient): void {
    detachClient(this.#context, live(sandbox), client);
  }

  execute(sandbox: Sandbox, language: Language, code: string): Promise<ManagedProcess> {
    return startExecution(this.#context, live(sandbox), language, code);
  }

  /** A new sandbox on another backend, with the workspace of this one, which is destroyed when that is up. */
  move(sandbox: Sandbox, request: MoveRequest, options?: VerbOptions): Promise<GivenOut<MovedSandbox>> {
    return moveSandbox(this.#context, live(sandbox), request, options);
  }

  fork(
    sandbox: Sandbox,
    request: ForkRequest,
    options?: VerbOptions,
  ): Promise<{ snapshotId: string; created: readonly GivenOut<CreatedSandbox>[] }> {
    return forkSandbox(this.#context, live(sandbox), request, options);
  }

  rewind(sandbox: Sandbox, idOrName: string, options?: VerbOptions): Promise<void> {
    return rewindSandbox(this.#context, live(sandbox), idOrName, options);
  }

  destroy(sandbox: Sandbox): Promise<void> {
    return destroySandbox(this.#context, live(sandbox));
  }

  /** A client has said something: the sandbox is in use. */
  touch(sandbox: Sandbox): void {
    live(sandbox).touch(this.#context.nowMs);
  }

  /** A call of a client begins that may take long; the function that this gives ends it. */
  hold(sandbox: Sandbox): () => void {
    return live(sandbox).hold(() => this.#context.nowMs);
  }

  countOutput(bytes: number): void {
    this.#context.options.observer.output(bytes);
  }

  untilThawed(sandbox: Sandbox): Promise<void> {
    return untilThawed(this.#context, live(sandbox));
  }

  /** This server was declared dead by others: nothing that it held under a lease is its own any more. */
  async loseOwnership(error: SandboxerError): Promise<void> {
    const context = this.#context;
    // Those that are saved or brought back find it out by themselves, before they publish or run.
    const running = [...context.sandboxes.values()].filter(({ state }) => state === "running");
    const lose = (sandbox: LiveSandbox): Promise<void> =>
      sandbox.outlivesServer
        ? context.reported("end of a lost sandbox", discardLostSandbox(context, sandbox, error))
        : context.reported("claim of a sandbox that nobody else could run", reclaim(context, sandbox));
    await Promise.all(running.map(lose));
  }

  /** To be called once, at the start, with the servers of this machine that have died: what they had and left. */
  settleOrphans(dead: ReadonlySet<string>): void {
    if (dead.size > 0) this.#context.inBackground("what dead servers left", settleOrphans(this.#context, dead));
  }

  /** To be called once, at the start: brings to the store what servers of this machine could not. */
  publishLeftBehind(): void {
    if (this.hasStore)
      this.#context.inBackground("what other servers left on this machine", publishLeftBehind(this.#context));
  }

  /** Puts every sandbox down; gives those that the store has not taken. */
  async drain(): Promise<readonly UnsavedSandbox[]> {
    this.#stopReaping();
    this.#stopKeeping();
    this.#context.proofs.stop();
    this.usage.stop();
    this.integrity.close();
    const [unsaved] = await Promise.all([drainSandboxes(this.#context), stopPreparing(this.#context)]);
    this.#stopListening();
    await this.#context.options.durable?.unpublished.close();
    return unsaved;
  }

  /** What other servers do to the sandboxes of this one. */
  #listen(): () => void {
    const context = this.#context;
    return context.durable.ownership.listen({
      onWanted: (sandboxId) => context.inBackground("handoff of a sandbox", yieldSandbox(context, sandboxId)),
      onFreeze: (sandboxIds) => freezeSandboxes(context, sandboxIds),
      onThaw: (sandboxIds) => thawSandboxes(context, sandboxIds),
      onLost: (sandboxId) => {
        const sandbox = context.sandboxes.get(sandboxId);
        if (sandbox === undefined) return;
        const error = new SandboxerError("lease_lost", "Another server has taken the sandbox over.");
        context.inBackground("end of a lost sandbox", discardLostSandbox(context, sandbox, error));
      },
    });
  }
}
