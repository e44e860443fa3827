import { asSandboxerError, type Carried, type RestoreRequestBody, SandboxerError } from "@sandboxer/protocol";
import type { SandboxHandle } from "../../../backends/backend.ts";
import { specHash } from "../../../backends/spec-hash.ts";
import type { NewHome } from "../../../lease/head.ts";
import type { ManagerContext } from "../../context.ts";
import { checkShown, keysShown } from "../../encryption.ts";
import type { LostExtras } from "../../files/extra-keeper.ts";
import type { SandboxPlan } from "../../lifecycle/plan.ts";
import { checkFree, switchCopy } from "../../lifecycle/replace-copy.ts";
import type { LiveSandbox, SandboxFacts } from "../../live-sandbox.ts";
import { openNetwork } from "../../network/network-access.ts";
import { tracked, type Track, type VerbOptions } from "../../observing/operations/tracked.ts";
import { residenceOf } from "../../ownership/residence.ts";
import { announceCopy, removeSpare } from "../../ownership/spare-copy.ts";
import { inStore } from "../../stored-facts.ts";
import { acquireFromSnapshot } from "../acquire-from-snapshot.ts";
import { captureSnapshot } from "../capture.ts";
import { removeSnapshot } from "../remove-snapshot.ts";
import { whyNotAllowed } from "./allowed.ts";
import { carriedBy, checkCarried, withLost } from "./carried.ts";
import { checkLoadable } from "./loadable.ts";
import { planOfSnapshot } from "./plan-restore.ts";
import { WORKSPACE_KIND } from "./workspace-archive.ts";

export type MoveRequest = Pick<RestoreRequestBody, "image" | "profile" | "inputs"> & { readonly backend: string };

/**
 * Moves a sandbox to another backend with the files of its workspace. It keeps its id, name, labels, key, token and
 * expiry; its epoch grows. The current copy serves until the new one runs, and keeps running if the move fails.
 */
export async function moveSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  request: MoveRequest,
  given: VerbOptions = {},
): Promise<Carried> {
  const options = { ...given, encryption: keysShown(sandbox, given.encryption) };
  checkCan(context, sandbox, request);
  checkShown(sandbox.facts.about.encryption, options.encryption);
  const { key } = sandbox.facts.about;
  // An acquire of the same key must not run meanwhile: it could find a sandbox that no longer matches, and delete it.
  const carried = await (key === null
    ? move(context, sandbox, request, options)
    : context.keys.run(key, () => move(context, sandbox, request, options)));
  const data = { from: sandbox.id, from_backend: carried.from, backend: carried.backend };
  context.events.append({ type: "sandbox.moved", sandboxId: sandbox.id, data });
  return carried;
}

function checkCan(context: ManagerContext, sandbox: LiveSandbox, { backend: to, profile }: MoveRequest): void {
  const target = context.backend(to);
  const { backend } = sandbox.facts;
  if (target.name === backend) {
    throw new SandboxerError("bad_request", `The sandbox is already on ${backend}.`, {
      hint: "Choose another backend; `sandboxer backends` lists them.",
    });
  }
  checkFree(sandbox);
  checkLoadable(context, target, { kind: WORKSPACE_KIND, requirements: { portable: {} } });
  const { spec, about } = sandbox.facts;
  const { profile: madeBy } = about;
  const why = whyNotAllowed(context, { from: backend, madeBy, profile: profile ?? madeBy, spec }, target);
  if (why !== null) throw new SandboxerError("not_supported", why);
}

async function move(
  context: ManagerContext,
  sandbox: LiveSandbox,
  request: MoveRequest,
  options: VerbOptions,
): Promise<Carried> {
  const { snapshot } = await captureSnapshot(context, sandbox, { reason: "move", mode: "workspace" }, options);
  options.operation?.concerns({ sandboxId: sandbox.id, snapshotId: snapshot.id });
  try {
    const carried = await carriedBy(context, snapshot, request);
    checkCarried(carried);
    const plan = planOfSnapshot(context, snapshot, request);
    const work = { operation: "move", sandboxId: sandbox.id, backend: plan.backend } as const;
    const lost = await sandbox.queue.run(() =>
      tracked(context, work, options, (track) =>
        switchBackend(context, sandbox, { plan, snapshotId: snapshot.id }, track),
      ),
    );
    return withLost(carried, lost);
  } catch (thrown) {
    await context.reported("removal of the snapshot of a move", removeSnapshot(context, snapshot.id));
    const { code, message, hint, details } = asSandboxerError(thrown);
    const said = `The sandbox was not moved and keeps running: ${message}`;
    throw new SandboxerError(code, said, { cause: thrown, hint, details });
  }
}

/** Runs in the sandbox's turn: starts the copy on the other backend, switches to it, and ends the current copy. */
async function switchBackend(
  context: ManagerContext,
  sandbox: LiveSandbox,
  { plan, snapshotId }: { readonly plan: SandboxPlan; readonly snapshotId: string },
  track: Track,
): Promise<LostExtras | undefined> {
  checkFree(sandbox);
  await sandbox.liveSaves.callOff();
  await removeSpare(context, sandbox.id);
  const before = sandbox.facts;
  const copy = await announceCopy(context, sandbox, plan.backend);
  let lost: LostExtras | undefined;
  let old: SandboxHandle;
  try {
    const facts = factsThere(context, before, { plan, snapshotId, copy });
    const onUnpacked = (unpacked: LostExtras): void => void (lost = unpacked);
    const handle = await acquireFromSnapshot(context, facts, snapshotId, track, onUnpacked);
    try {
      const network = await openNetwork(context, facts, handle);
      const processes = await handle.processes();
      checkFree(sandbox);
      const { epoch } = await context.durable.ownership.rehouse(sandbox, homeOf(context, before, facts));
      sandbox.rehouse(facts, epoch);
      old = switchCopy(context, sandbox, { handle, network }, processes);
    } catch (error) {
      await context.reported("end of a discarded copy", handle.destroy());
      throw error;
    }
  } catch (error) {
    await context.reported("removal of a discarded copy", removeSpare(context, sandbox.id));
    throw error;
  }
  await context.reported("end of a sandbox that was moved", old.destroy());
  await context.reported("removal of the copy before a move", removeSpare(context, sandbox.id));
  return lost;
}

/** The facts after the move: backend, spec and flags change; name, labels, key, token and expiry stay. */
function factsThere(
  context: ManagerContext,
  before: SandboxFacts,
  { plan, snapshotId, copy }: { readonly plan: SandboxPlan; readonly snapshotId: string; readonly copy: number },
): SandboxFacts {
  const { backend, spec, flags } = plan;
  const { profile, max_loss, retention } = plan.about;
  const spec_hash = before.about.key === null ? null : specHash(backend, spec);
  return {
    ...before,
    backend,
    spec,
    flags,
    copy,
    residence: residenceOf(context, plan),
    lineage: { ...before.lineage, snapshot: snapshotId },
    about: { ...before.about, profile, max_loss, retention, spec_hash },
  };
}

function homeOf(context: ManagerContext, before: SandboxFacts, facts: SandboxFacts): NewHome {
  const { backend, flags, lineage, about, residence, copy } = facts;
  const isKept = context.backend(before.backend).capabilities.outlivesServer;
  const spare_copy = isKept ? { backend: before.backend, copy: before.copy, spec: inStore(before).spec } : null;
  return { backend, spec: inStore(facts).spec, flags, lineage, about, residence, copy, spare_copy };
}
