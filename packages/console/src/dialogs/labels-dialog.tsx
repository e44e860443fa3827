import { Sandbox, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { labelSpellings } from "../actions/snapshot-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { LabelFields, labelsOfRows, rowsOfLabels } from "./label-fields.tsx";
import { useLongCall } from "./use-long-call.ts";

export function LabelsDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [rows, setRows] = useState(rowsOfLabels(sandbox.labels));
  const labels = labelsOfRows(rows);
  const call = useLongCall<SandboxRecord>(`Labels of ${sandboxTitle(sandbox)}`);
  const submit = (): void =>
    call.run(async () => {
      const record = await (await Sandbox.attach(sandbox.id, { client, autoResume: false })).update({ labels });
      noteSandbox(record);
      return record;
    });
  return (
    <ActionDialog
      title={`Labels of ${sandboxTitle(sandbox)}`}
      submit="Save"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => labelSpellings(sandbox.id, sandbox.labels, labels)}
      done={(record) => <p>Saved {Object.keys(record.labels).length} labels.</p>}
    >
      <LabelFields rows={rows} onChange={setRows} />
    </ActionDialog>
  );
}
