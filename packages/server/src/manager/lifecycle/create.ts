import { createHash, randomBytes, randomUUID } from "node:crypto";
import { asSandboxerError, type Lineage, type CreateRequestBody } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxBackend, SandboxHandle, SandboxProcess } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { acquireRequest } from "./acquire-request.ts";
import type { SandboxClient } from "../client.ts";
import type { ManagerContext } from "../context.ts";
import { clientKeyFor, encryptionFor } from "../encryption.ts";
import { leaseLost, watchForEnd } from "./end-of-sandbox.ts";
import { withGoodCopy } from "../saving/with-good-copy.ts";
import { LiveSandbox, type SandboxFacts } from "../live-sandbox.ts";
import { openNetwork } from "../network/network-access.ts";
import { checkPreference } from "../ownership/fitting-servers.ts";
import { eraseHead, residenceOf } from "../ownership/residence.ts";
import { checkNeeds, type SandboxPlan, planSandbox, type Manner } from "./plan.ts";
import { startEntrypoint } from "./entrypoint.ts";
import { runSetup } from "./setup-commands.ts";
import { acquireWithState } from "../snapshots/portable/acquire-with-state.ts";
import { type SandboxSource, withNamedSource } from "../snapshots/source.ts";
import { inStore } from "../stored-facts.ts";
import type { LostExtras } from "../files/extra-keeper.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "../saving/work-folder.ts";

const TOKEN_BYTES = 32;

/** The origin of a sandbox that was created from scratch. */
export const NO_LINEAGE: Lineage = { sandbox_id: null, checkpoint: null, filesystem_snapshot: null, snapshot: null };

export interface CreateRequest {
  readonly plan: SandboxPlan;
  /** Attached to the new sandbox; absent: no client. */
  readonly client?: SandboxClient;
  readonly source?: SandboxSource;
  /** Called around taking ownership, which only stored sandboxes have. */
  readonly onOwnership?: (step: "acquiring" | "acquired") => void;
}

export interface CreatedSandbox {
  readonly sandbox: LiveSandbox;
  /** Returned once, to the creator; only its digest is kept. */
  readonly token: string;
  /** The attributes that the unpacked workspace lost; undefined: nothing was unpacked. */
  readonly lost: LostExtras | undefined;
}

/** Creates a sandbox and attaches its creator. On failure nothing is left of it. */
export async function createSandbox(
  context: ManagerContext,
  request: CreateRequest,
  options: VerbOptions = {},
): Promise<CreatedSandbox> {
  const { plan, source } = request;
  checkNeeds(context, plan);
  const { backend, about, spec } = plan;
  if (options.mayPlace === true)
    await checkPreference(context, { backends: [backend], affinity: about.affinity, resources: spec.resources });
  if (source !== undefined || plan.filesystemSnapshot === undefined) return create(context, request, options);
  return withNamedSource(context, plan.filesystemSnapshot, (named) =>
    create(context, { ...request, source: named }, options),
  );
}

async function create(context: ManagerContext, request: CreateRequest, options: VerbOptions): Promise<CreatedSandbox> {
  const { plan, source } = request;
  source?.check(context.backend(plan.backend));
  const token = randomBytes(TOKEN_BYTES).toString("hex");
  const encryption = await encryptionFor(context, options.encryption, source);
  const lineage = source?.lineage ?? NO_LINEAGE;
  const tokenHash = createHash("sha256").update(token).digest("hex");
  const own = { sandboxId: randomUUID(), lineage, tokenHash, residence: residenceOf(context, plan) };
  const facts = factsOf(context, { ...plan, about: { ...plan.about, encryption } }, own);
  const sandbox = new LiveSandbox(facts, "creating", context.nowMs, context.onMove(facts.sandboxId));
  sandbox.clientKey = clientKeyFor(encryption, options.encryption);
  context.admit(sandbox);
  const work = { operation: "create", sandboxId: sandbox.id, backend: facts.backend } as const;
  const signal = options.signal === undefined ? sandbox.creation : AbortSignal.any([options.signal, sandbox.creation]);
  try {
    return await tracked(context, work, { ...options, signal }, async (track) => {
      let lost: LostExtras | undefined;
      let processes: readonly SandboxProcess[] = [];
      const kept = facts.residence === "provider";
      // Before the sandbox exists: its provider would keep it, and others would find it by its key and take it.
      if (kept) await takeOwnership(context, facts, request.onOwnership);
      // If nothing is left of the sandbox without this server, the head may be written at any time.
      const owning = kept || sandbox.durable ? undefined : takeOwnership(context, facts, undefined);
      owning?.catch(() => {});
      await context.hasPlace(signal);
      const asked = options.tenant === undefined ? {} : { tenant: options.tenant };
      const handle = await acquire(context, facts, asked, source, track, (unpacked) => (lost = unpacked));
      const network = await orDestroy(handle, async () => {
        const opened = await openNetwork(context, facts, handle);
        const env = opened.environmentBeside(facts.spec.env);
        if (source === undefined) {
          await runSetup(handle, facts.spec.setup ?? [], { ...track.options, env });
          if (plan.entrypoint === true) processes = [await startEntrypoint(handle, track.options, env)];
        } else processes = await handle.processes();
        signal.throwIfAborted();
        if (sandbox.durable) await takeOwnership(context, facts, request.onOwnership);
        await owning;
        await confirm(facts, source, signal);
        // This server may have been declared dead meanwhile.
        if (!context.durable.ownership.holds(sandbox)) throw leaseLost();
        return opened;
      });
      track.lap("ownership");
      if (request.client !== undefined) sandbox.attach(request.client, context.nowMs);
      sandbox.started(handle, network);
      watchForEnd(context, sandbox, processes);
      return { sandbox, token, lost };
    });
  } catch (error) {
    sandbox.moveTo("gone");
    await context.reported("removal of a sandbox that could not be created", withdrawHead(context, sandbox.id));
    throw sandbox.creation.aborted ? sandbox.creation.reason : error;
  }
}

/** Also one that is still being restored: moves of one sandbox run one after the other. */
async function withdrawHead(context: ManagerContext, sandboxId: string): Promise<void> {
  try {
    await eraseHead(context, sandboxId);
  } catch (error) {
    if (asSandboxerError(error).code !== "sandbox_not_found") throw error;
  }
}

/** The facts of a sandbox that is created as planned; `own`: facts that no plan has. */
export function factsOf(
  { options }: ManagerContext,
  plan: SandboxPlan,
  own: Pick<SandboxFacts, "sandboxId" | "lineage" | "tokenHash" | "residence"> & Partial<Pick<SandboxFacts, "copy">>,
): SandboxFacts {
  const { filesystemSnapshot: _began, entrypoint: _started, ...planned } = plan;
  return { ...planned, copy: 0, createdAt: new Date(options.clock.wallMs()).toISOString(), ...own };
}

async function acquire(
  context: ManagerContext,
  facts: SandboxFacts,
  asked: Pick<VerbOptions, "tenant">,
  source: SandboxSource | undefined,
  track: Track,
  onUnpacked: (lost: LostExtras) => void,
): Promise<SandboxHandle> {
  const backend = context.backend(facts.backend);
  const request = { ...(await acquireRequest(context, facts, track.options)), ...asked };
  const handle =
    source === undefined
      ? await backend.acquire(request, track.options)
      : ((await takePrepared(backend, request, source, track.options)) ??
        (await withGoodCopy(() =>
          withWorkFolder(context.options.workDirectory, async (folder) => {
            const state = await source.load(folder, { ...track.options, verifyBeside: true });
            track.lap("unpack");
            return await acquireWithState(backend, request, state, track.options, onUnpacked);
          }),
        )));
  track.lap("backend");
  return handle;
}

async function takePrepared(
  backend: SandboxBackend,
  request: AcquireRequest,
  source: SandboxSource,
  options: CallOptions,
): Promise<SandboxHandle | undefined> {
  const state = source.ahead?.(backend);
  return state === undefined ? undefined : backend.takePrepared?.(request, state, options);
}

/** A failure after the sandbox was created leaves nothing of it. */
async function orDestroy<Result>(handle: SandboxHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await handle.destroy();
    throw error;
  }
}

/**
 * Written last, because a head without a sandbox would stay in the store forever; written first only if the sandbox
 * would stay at its provider. Clients are told where it matters to them.
 */
async function takeOwnership(
  context: ManagerContext,
  facts: SandboxFacts,
  onOwnership: CreateRequest["onOwnership"],
): Promise<void> {
  const tell = facts.flags.enable_checkpoint ? onOwnership : undefined;
  tell?.("acquiring");
  await createHead(context, facts, { isFresh: true });
  tell?.("acquired");
}

/** `isFresh`: the id was never used before. */
export async function createHead(
  context: ManagerContext,
  facts: SandboxFacts,
  options: { readonly isFresh?: boolean } = {},
): Promise<void> {
  const { idle_timeout: idleTimeoutSeconds, token_hash: tokenHash, ...stored } = inStore(facts);
  await context.durable.ownership.create(facts.sandboxId, { ...stored, idleTimeoutSeconds, tokenHash }, options);
}

/**
 * Until its first save, the sandbox can be restored only from its origin. A removal of the origin reads the heads last;
 * so, now that there is a head, the origin either stays or is already missing, and then the creation fails. It also
 * fails if it was cancelled meanwhile.
 */
async function confirm(facts: SandboxFacts, source: SandboxSource | undefined, signal: AbortSignal): Promise<void> {
  if (facts.flags.enable_checkpoint) await source?.confirm();
  signal.throwIfAborted();
}

/** Creates the sandbox that a request describes. */
export async function createFromRequest(
  context: ManagerContext,
  body: CreateRequestBody,
  manner: Manner,
  request: Pick<CreateRequest, "client" | "onOwnership">,
  options: VerbOptions = {},
): Promise<CreatedSandbox> {
  const plan = await planSandbox(context, body, manner);
  return createSandbox(context, { ...request, plan }, options);
}
