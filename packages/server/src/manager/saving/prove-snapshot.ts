import { SandboxerError, type SnapshotInfo } from "@sandboxer/protocol";
import type { SandboxBackend } from "../../backends/backend.ts";
import type { MasterKey } from "../../checkpoints/keys/master-key.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { ProofContext } from "../room-contexts.ts";
import { checkLoadable } from "../snapshots/portable/loadable.ts";
import { getSnapshot } from "../snapshots/snapshot-records.ts";
import { findSnapshot, labelOf } from "../snapshots/source.ts";
import { parseStoredSpec } from "../stored-facts.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { checkTrial, notRestored, type Trial, tryRestore } from "./trial-restore.ts";

const HINT = "Take another snapshot while its sandbox exists. See the server's log for details.";

/** Test-restores a snapshot. Its record gets the result. */
export async function proveSnapshot(
  context: ProofContext,
  idOrName: string,
  options: VerbOptions = {},
): Promise<SnapshotInfo> {
  const snapshot = await findSnapshot(context, idOrName);
  const backend = context.backend(snapshot.backend);
  checkProvable(context, snapshot, backend);
  options.operation?.concerns({ snapshotId: snapshot.id });
  await tryRestore(context, trialOf(context, snapshot, backend), options);
  return await getSnapshot(context, snapshot.id);
}

/**
 * If the server test-restores snapshots automatically: this one, when its turn comes. Snapshots that are restored
 * anyway are skipped.
 */
export function proveInBackground(context: ProofContext, snapshot: StoredSnapshot, presentedKey?: MasterKey): void {
  const { proveSnapshots = false, observer } = context.options;
  const wanted = snapshot.reason === "request" || snapshot.reason === "named";
  if (!proveSnapshots || !wanted || !isProvable(context, snapshot)) return;
  if (context.proofs.full) {
    return observer.problem("a snapshot was not test-restored: too many are waiting", { snapshotId: snapshot.id });
  }
  // The result is in its record, in the events and in the log.
  void proveSnapshot(context, snapshot.id, { encryption: { presentedKey } }).catch(() => {});
}

/** Whether a snapshot can be test-restored at all. */
function isProvable(context: ProofContext, snapshot: StoredSnapshot): boolean {
  try {
    checkProvable(context, snapshot, context.backend(snapshot.backend));
    return true;
  } catch {
    return false;
  }
}

function checkProvable(context: ProofContext, snapshot: StoredSnapshot, backend: SandboxBackend): void {
  checkTrial(backend);
  if (snapshot.mode === "metadata") {
    throw new SandboxerError("not_supported", "The snapshot contains only metadata: there is nothing to restore.");
  }
  checkLoadable(context, backend, labelOf(snapshot));
}

function trialOf(context: ProofContext, snapshot: StoredSnapshot, backend: SandboxBackend): Trial {
  const { id, sandbox_id: sandboxId } = snapshot;
  return {
    sandboxId,
    backend,
    spec: specOf(snapshot),
    load: (folder, options) => context.snapshots.load(id, folder, options),
    proven: async (proven) => {
      await context.snapshots.amend(id, { proof: { proven, unproven: null } });
      tell(context, snapshot, "snapshot.proven", proven);
    },
    unproven: async (failure, error) => {
      const noted = context.snapshots.amend(id, { proof: { proven: null, unproven: failure } });
      await context.reported("record of a failed test restore", noted);
      tell(context, snapshot, "snapshot.unproven", failure);
      return notRestored(`snapshot ${snapshot.name ?? id}`, error, HINT);
    },
  };
}

function specOf({ id, spec }: StoredSnapshot): Trial["spec"] {
  return parseStoredSpec(`snapshots/${id}/record.json`, spec).spec;
}

function tell(context: ProofContext, { id, name, sandbox_id }: StoredSnapshot, type: string, data: object): void {
  context.events.append({ type, sandboxId: sandbox_id, data: { snapshot_id: id, name, ...data } });
}
