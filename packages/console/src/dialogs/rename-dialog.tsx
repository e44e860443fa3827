import { Sandbox, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { renameSpellings } from "../actions/snapshot-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { NameField } from "./fields.tsx";
import { useLongCall } from "./use-long-call.ts";

export function RenameDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [text, setText] = useState(sandbox.name ?? "");
  const name = text === "" ? null : text;
  const call = useLongCall<SandboxRecord>(`Name of ${sandboxTitle(sandbox)}`);
  const submit = (): void =>
    call.run(async () => {
      const record = await (await Sandbox.attach(sandbox.id, { client, autoResume: false })).update({ name });
      noteSandbox(record);
      return record;
    });
  return (
    <ActionDialog
      title={`Rename ${sandboxTitle(sandbox)}`}
      submit="Rename"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => renameSpellings(sandbox.id, name)}
      done={(record) => <p>{record.name === null ? "The name was removed." : `Renamed to ${record.name}.`}</p>}
    >
      <NameField label="Name" value={text} onChange={setText} hint="Optional. Leave it empty to remove the name." />
    </ActionDialog>
  );
}
