import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotKind } from "../backends/backend.ts";
import type { StoredSnapshot } from "../checkpoints/snapshot-record.ts";
import type { ManagerContext } from "./context.ts";
import { readDescendants } from "./lineage.ts";
import { findSnapshot } from "./snapshot-source.ts";

/** Removes a snapshot and its data; refused while a sandbox that lives, or has no other state, began with it. */
export async function removeSnapshot(context: ManagerContext, idOrName: string): Promise<void> {
  const snapshot = await findSnapshot(context, idOrName);
  const { id, name, sandbox_id: sandboxId } = snapshot;
  await context.snapshots.remove(id, async () => {
    const dependants = ((await readDescendants(context)).get(id) ?? []).filter(({ needs }) => needs !== undefined);
    if (dependants.length === 0) return;
    const words = dependants.map((each) => `${each.name ?? each.sandboxId} (${each.needs})`);
    throw new SandboxerError("snapshot_in_use", `The snapshot ${id} is needed by ${words.join(", ")}.`, {
      details: { dependants: dependants.map((each) => ({ sandbox_id: each.sandboxId, reason: each.needs })) },
    });
  });
  await context.reported("removal of what a snapshot refers to", forget(context, snapshot));
  context.events.append({ type: "snapshot.deleted", sandboxId, data: { snapshot_id: id, name } });
}

/** After the record: what a backend keeps for a record that is there must not be gone. */
async function forget({ options }: ManagerContext, { backend, kind, requirements }: StoredSnapshot): Promise<void> {
  const payload = { kind: kind as SnapshotKind, members: [], requirements: requirements ?? {} };
  await options.backends.get(backend)?.forgetSnapshot?.(payload);
}
