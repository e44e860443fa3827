import type { SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { proveSpellings } from "../actions/saved-state-actions.ts";
import { loadSnapshots, noteSnapshot } from "../live/snapshots.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

/** Restores a snapshot by way of trial. */
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
        // One that failed is in its record.
        void loadSnapshots();
        throw thrown;
      }
    });
  return (
    <ActionDialog
      title={`Prove ${title}`}
      submit="Restore it by way of trial"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => proveSpellings(snapshot.id)}
      done={({ proven }) => (
        <p>It can be restored: the test restore answered{proven === null ? "" : `, on ${proven.engine}`}.</p>
      )}
    >
      <p>
        It is restored where nobody can reach it, without a network and without secrets. When it answers it is ended,
        and the snapshot is proven.
      </p>
      <p class="hint">What ran in the snapshot runs for that moment.</p>
    </ActionDialog>
  );
}
