import type { SandboxerError, SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { deleteSnapshotSpellings } from "../actions/snapshot-actions.ts";
import { formatBytes } from "../format/bytes.ts";
import { sandboxTitle, shortId } from "../format/names.ts";
import { sandboxes } from "../live/sandboxes.ts";
import { forgetSnapshot } from "../live/snapshots.ts";
import { client } from "../session.ts";
import { Link } from "../router.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

export function DeleteSnapshotDialog({
  snapshot,
  onClose,
}: {
  readonly snapshot: SnapshotRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const call = useLongCall<true>(`Removal of ${snapshotTitle(snapshot)}`);
  const submit = (): void =>
    call.run(async () => {
      await client.snapshots.delete(snapshot.id);
      forgetSnapshot(snapshot.id);
      return true;
    });
  return (
    <ActionDialog
      title={`Delete ${snapshotTitle(snapshot)}`}
      submit="Delete"
      danger
      ready={!snapshot.pinned}
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => deleteSnapshotSpellings(snapshot.id)}
      done={() => <p>{snapshotTitle(snapshot)} was deleted.</p>}
      more={call.error === undefined ? null : <Dependants error={call.error} />}
    >
      <p>
        This permanently deletes the snapshot and its {formatBytes(snapshot.sizeBytes)}. Snapshots derived from it are
        kept.
      </p>
      {snapshot.pinned ? <p class="dialog-warning">The snapshot is pinned. Unpin it before you delete it.</p> : null}
    </ActionDialog>
  );
}

interface Dependant {
  readonly sandbox_id: string;
  readonly reason: string;
}

/** The sandboxes that need it, as the server reports. */
function Dependants({ error }: { readonly error: SandboxerError }): JSX.Element | null {
  const given = error.details["dependants"];
  if (!Array.isArray(given) || given.length === 0) return null;
  return (
    <ul>
      {(given as Dependant[]).map(({ sandbox_id: id, reason }) => {
        const record = sandboxes.value.get(id);
        return (
          <li key={id}>
            <Link to={`/sandboxes/${encodeURIComponent(id)}`}>
              {record === undefined ? shortId(id) : sandboxTitle(record)}
            </Link>{" "}
            {reason}
          </li>
        );
      })}
    </ul>
  );
}
