import { Sandbox, type SandboxRecord, type SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { rewindSpellings } from "../actions/snapshot-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";
import { ErrorBox } from "../ui/error-box.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { SelectField, type Choice } from "./fields.tsx";
import { LossView } from "./loss-view.tsx";
import { snapshotLine } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

export function RewindDialog({
  sandbox,
  snapshotId,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly snapshotId: string | undefined;
  readonly onClose: () => void;
}): JSX.Element {
  const snapshots = useLoaded((signal) => loadable(sandbox, signal), [sandbox.id]);
  const [chosen, setChosen] = useState(snapshotId);
  const selected = chosen ?? snapshots.value?.[0]?.id;
  const call = useLongCall<SandboxRecord>(`Rewind of ${sandboxTitle(sandbox)}`);
  const submit = (): void => {
    if (selected === undefined) return;
    call.run(async (onProgress) => {
      const handle = await Sandbox.attach(sandbox.id, { client });
      const record = await handle.rewind(selected, { onProgress });
      noteSandbox(record);
      return record;
    });
  };
  const none = snapshots.value?.length === 0;
  return (
    <ActionDialog
      title={`Rewind ${sandboxTitle(sandbox)}`}
      submit="Rewind"
      danger
      ready={selected !== undefined}
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={selected === undefined ? undefined : () => rewindSpellings(sandbox.id, selected)}
      done={(record) => <p>{sandboxTitle(record)} was rewound to the snapshot and is running.</p>}
    >
      <p>Returns this sandbox to a snapshot. Running programs are ended.</p>
      {snapshots.error === undefined ? null : <ErrorBox error={snapshots.error} />}
      {none ? <p class="hint">There is no snapshot to rewind to. Take one first.</p> : null}
      {snapshots.value === undefined || selected === undefined ? null : (
        <>
          <SelectField
            label="Snapshot"
            value={selected}
            choices={choicesOf(snapshots.value, sandbox)}
            onChange={setChosen}
          />
          <LossView sandboxId={sandbox.id} snapshotId={selected} />
        </>
      )}
    </ActionDialog>
  );
}

/** Its own first; then other snapshots of the same backend. */
async function loadable({ id, backend }: SandboxRecord, signal: AbortSignal): Promise<SnapshotRecord[]> {
  const all: SnapshotRecord[] = [];
  for await (const snapshot of client.snapshots.list({ limit: 1000 }, { signal })) all.push(snapshot);
  const fits = all.filter((snapshot) => snapshot.state === "ready" && snapshot.backend === backend);
  return [...fits.filter(({ sandboxId }) => sandboxId === id), ...fits.filter(({ sandboxId }) => sandboxId !== id)];
}

function choicesOf(snapshots: readonly SnapshotRecord[], sandbox: SandboxRecord): Choice[] {
  return snapshots.map((snapshot) => ({
    value: snapshot.id,
    text: snapshotLine(snapshot),
    group: snapshot.sandboxId === sandbox.id ? "This sandbox" : "Other sandboxes",
  }));
}
