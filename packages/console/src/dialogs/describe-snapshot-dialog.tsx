import type { SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { amendSnapshotSpellings } from "../actions/snapshot-actions.ts";
import { noteSnapshot } from "../live/snapshots.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { NameField } from "./fields.tsx";
import { LabelFields, labelsOfRows, rowsOfLabels } from "./label-fields.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

export function DescribeSnapshotDialog({
  snapshot,
  onClose,
}: {
  readonly snapshot: SnapshotRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [name, setName] = useState(snapshot.name ?? "");
  const [rows, setRows] = useState(rowsOfLabels(snapshot.labels));
  const call = useLongCall<SnapshotRecord>(`Name of ${snapshotTitle(snapshot)}`);
  const change = { name: name === "" ? null : name, labels: labelsOfRows(rows) };
  const submit = (): void =>
    call.run(async () => {
      const record = await client.snapshots.update(snapshot.id, change);
      noteSnapshot(record);
      return record;
    });
  return (
    <ActionDialog
      title={`Name and labels of ${snapshotTitle(snapshot)}`}
      submit="Save"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => amendSnapshotSpellings(snapshot, change)}
      done={(record) => <p>{record.name === null ? "The name was removed." : `Renamed to ${record.name}.`}</p>}
    >
      <NameField label="Name" value={name} onChange={setName} hint="Optional. Leave it empty to remove the name." />
      <LabelFields rows={rows} onChange={setRows} />
    </ActionDialog>
  );
}
