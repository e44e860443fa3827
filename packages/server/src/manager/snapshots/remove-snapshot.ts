import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import { nameTaken } from "../../checkpoints/snapshot-names.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { RemovalContext } from "../room-contexts.ts";
import { readDescendants } from "./lineage.ts";
import { findSnapshot } from "./source.ts";
import { parseStoredSpec } from "../stored-facts.ts";

const FORGET_TIMEOUT_MS = 60_000;

export interface RemoveOptions {
  /** Whether a snapshot that got a name meanwhile is kept. */
  readonly unlessNamed?: boolean;
}

/**
 * Deletes a snapshot and its data; refused while it is pinned, and while a sandbox that runs or has no other state was
 * created from it.
 */
export async function removeSnapshot(
  context: RemovalContext,
  idOrName: string,
  { unlessNamed = false }: RemoveOptions = {},
): Promise<void> {
  const snapshot = await findSnapshot(context, idOrName);
  const { id, name, sandbox_id: sandboxId } = snapshot;
  await context.snapshots.remove(id, async (present) => {
    if (present.pinned === true) throw new SandboxerError("snapshot_pinned", `The snapshot ${id} is pinned.`);
    if (unlessNamed && present.name !== null) throw nameTaken(present.name, id);
    const dependants = ((await readDescendants(context)).get(id) ?? []).filter(({ needs }) => needs !== undefined);
    if (dependants.length === 0) return;
    const words = dependants.map((each) => `${each.name ?? each.sandboxId} (${each.needs})`);
    throw new SandboxerError("snapshot_in_use", `The snapshot ${id} is needed by ${words.join(", ")}.`, {
      details: { dependants: dependants.map((each) => ({ sandbox_id: each.sandboxId, reason: each.needs })) },
    });
  });
  for (const backend of context.options.backends.values()) backend.forgetPrepared?.(id);
  const left = await forget(context, snapshot);
  context.events.append({ type: "snapshot.deleted", sandboxId, data: { snapshot_id: id, name, left } });
}

/**
 * Removes what the snapshot's backend keeps for it. After the record: the data of an existing record must never be
 * missing. An unavailable provider does not block a deletion; returns what is left there, or null.
 */
async function forget(context: RemovalContext, snapshot: StoredSnapshot): Promise<string | null> {
  const { backend, kind, requirements, id } = snapshot;
  const payload = { kind, members: [], requirements: requirements ?? {} };
  try {
    const { spec } = parseStoredSpec(`snapshots/${id}/record.json`, snapshot.spec);
    const signal = AbortSignal.timeout(FORGET_TIMEOUT_MS);
    const { placement = {} } = spec;
    await context.options.backends.get(backend)?.forgetSnapshot?.(payload, { placement, signal });
    return null;
  } catch (error) {
    context.options.observer.problem("removal of a snapshot's data at its provider", { snapshotId: id, error });
    return asSandboxerError(error).message;
  }
}
