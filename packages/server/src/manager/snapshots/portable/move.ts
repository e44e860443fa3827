import { asSandboxerError, type Carried, type RestoreRequestBody, SandboxerError } from "@sandboxer/protocol";
import { specHash } from "../../../backends/spec-hash.ts";
import type { StoredSnapshot } from "../../../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "../../context.ts";
import { createSandbox, type CreatedSandbox } from "../../lifecycle/create.ts";
import { destroySandbox } from "../../lifecycle/destroy.ts";
import { destroyById } from "../../lifecycle/destroy-by-id.ts";
import { checkShown } from "../../encryption.ts";
import type { LiveSandbox } from "../../live-sandbox.ts";
import { listSandboxes } from "../../observing/list-sandboxes.ts";
import { captureSnapshot } from "../capture.ts";
import { removeSnapshot } from "../remove-snapshot.ts";
import { sourceOf } from "../source.ts";
import type { VerbOptions } from "../../observing/operations/tracked.ts";
import { whyNotAllowed } from "./allowed.ts";
import { carriedBy, checkCarried, withLost } from "./carried.ts";
import { checkLoadable } from "./loadable.ts";
import { planOfSnapshot } from "./plan-restore.ts";
import { WORKSPACE_KIND } from "./workspace-archive.ts";

export type MoveRequest = Pick<RestoreRequestBody, "image" | "profile" | "inputs"> & { readonly backend: string };

export interface MovedSandbox extends CreatedSandbox {
  readonly carried: Carried;
}

/**
 * Moves the workspace of a sandbox to another backend: a new one there, with its name, labels, key and end of life, and
 * an id of its own. The old one serves until the new one is up, and goes on if that fails.
 */
export async function moveSandbox(
  context: ManagerContext,
  sandbox: LiveSandbox,
  request: MoveRequest,
  options: VerbOptions = {},
): Promise<MovedSandbox> {
  checkCan(context, sandbox, request);
  checkShown(sandbox.facts.about.encryption, options.encryption);
  const { key } = sandbox.facts.about;
  // Who asks for the key meanwhile would find two, and end one of them.
  const moved = await (key === null
    ? move(context, sandbox, request, options)
    : context.keys.run(key, () => move(context, sandbox, request, options)));
  const { carried, sandbox: fresh } = moved;
  const data = { from: sandbox.id, from_backend: carried.from, backend: carried.backend };
  context.events.append({ type: "sandbox.moved", sandboxId: fresh.id, data });
  return moved;
}

function checkCan(context: ManagerContext, sandbox: LiveSandbox, { backend: to, profile }: MoveRequest): void {
  const target = context.backend(to);
  const { backend } = sandbox.facts;
  if (target.name === backend) {
    throw new SandboxerError("bad_request", `The sandbox is on ${backend} already.`, {
      hint: "Name another backend; `sandboxer backends` lists them.",
    });
  }
  sandbox.checkRunning();
  if (sandbox.client !== undefined) throw new SandboxerError("sandbox_in_use", "A client is attached to the sandbox.");
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
): Promise<MovedSandbox> {
  const captured = await captureSnapshot(context, sandbox, { reason: "move", mode: "workspace" }, options);
  const { snapshot } = captured;
  let fresh: CreatedSandbox | undefined;
  try {
    const carried = await carriedBy(context, snapshot, request);
    checkCarried(carried);
    fresh = await makeThere(context, sandbox, snapshot, request, options);
    await endHere(context, sandbox, fresh.sandbox.id);
    options.operation?.concerns({ sandboxId: fresh.sandbox.id, snapshotId: snapshot.id });
    return { ...fresh, carried: withLost(carried, fresh.lost) };
  } catch (thrown) {
    throw await undo(context, snapshot, fresh, thrown);
  }
}

async function makeThere(
  context: ManagerContext,
  { facts }: LiveSandbox,
  snapshot: StoredSnapshot,
  request: MoveRequest,
  options: VerbOptions,
): Promise<CreatedSandbox> {
  const planned = planOfSnapshot(context, snapshot, request);
  const { name, key, expires_at } = facts.about;
  const spec_hash = key === null ? null : specHash(planned.backend, planned.spec);
  const about = { ...planned.about, name, key, spec_hash, expires_at };
  const plan = { ...planned, about, labels: facts.labels, idleTimeoutMs: facts.idleTimeoutMs };
  return await createSandbox(context, { plan, source: sourceOf(context, snapshot) }, options);
}

/** Only one that is whole is worth going back to: when its end fails half-way, the new one stays. */
async function endHere(context: ManagerContext, old: LiveSandbox, freshId: string): Promise<void> {
  try {
    if (old.client !== undefined) throw new SandboxerError("sandbox_in_use", "A client has attached to the sandbox.");
    // It may have been saved meanwhile, so that it is looked for wherever it is.
    await destroyById(context, old.id, undefined);
  } catch (error) {
    if (old.state === "running") throw error;
    context.options.observer.problem("end of a sandbox that was moved", { sandboxId: old.id, freshId, error });
  }
  const { key } = old.facts.about;
  if (key === null) return;
  const isThere = async (id: string): Promise<boolean> =>
    id !== old.id && (await listSandboxes(context, { key })).some((record) => record.id === id);
  await context.reported("claim of a key after a move", context.durable.claims.take(key, freshId, isThere));
}

async function undo(
  context: ManagerContext,
  snapshot: StoredSnapshot,
  fresh: CreatedSandbox | undefined,
  thrown: unknown,
): Promise<SandboxerError> {
  if (fresh !== undefined) {
    await context.reported("end of a sandbox whose move was undone", destroySandbox(context, fresh.sandbox));
  }
  await context.reported("removal of the snapshot of a move", removeSnapshot(context, snapshot.id));
  const { code, message, hint, details } = asSandboxerError(thrown);
  return new SandboxerError(code, `The sandbox was not moved and goes on: ${message}`, {
    cause: thrown,
    hint,
    details,
  });
}
