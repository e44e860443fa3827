import type { SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { proveSpellings } from "../actions/saved-state-actions.ts";
import { loadSnapshots, noteSnapshot } from "../live/snapshots.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

/** Test-restores a snapshot. */
export function ProveDialog({
  snapshot,
  onClose,
}: {
  readonly snapshot: SnapshotRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const title = snapshotTitle(snapshot);
  const call = useLongCall<SnapshotRecord>(`Test restore of ${title}`);
  const submit = (): void =>
    call.run(async (onProgress) => {
      try {
        const record = await client.snapshots.prove(snapshot.id, { onProgress });
        noteSnapshot(record);
        return record;
      } catch (thrown) {
        // Its record has the failure.
        void loadSnapshots();
        throw thrown;
      }
    });
  return (
    <ActionDialog
      title={`Test-restore ${title}`}
      submit="Test restore"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => proveSpellings(snapshot.id)}
      done={({ proven }) => (
        <p>The snapshot can be restored: the test restore answered{proven === null ? "" : `, on ${proven.engine}`}.</p>
      )}
    >
      <p>
        Restores the snapshot into a temporary sandbox without network access and secrets, checks that it answers, and
        deletes it.
      </p>
      <p class="hint">Programs in the snapshot run for that moment.</p>
    </ActionDialog>
  );
}
