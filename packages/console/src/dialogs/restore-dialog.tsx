import { Sandbox, type BackendRecord, type SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { restoreSpellings, type RestoreChoice } from "../actions/snapshot-actions.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { useLoaded } from "../live/use-loaded.ts";
import { client } from "../session.ts";
import { ErrorBox } from "../ui/error-box.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { CarriedView } from "./carried-view.tsx";
import { NameField, SelectField, type Choice } from "./fields.tsx";
import { NewSandboxes } from "./new-sandboxes.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

export function RestoreDialog({
  snapshot,
  onClose,
}: {
  readonly snapshot: SnapshotRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [backend, setBackend] = useState("");
  const backends = useLoaded((signal) => client.backends({ signal }), []);
  const asked = backend === "" ? {} : { backend };
  const carried = useLoaded(
    (signal) => client.snapshots.explain(snapshot.id, { ...asked, signal }),
    [snapshot.id, backend],
  );
  const call = useLongCall<Sandbox>(`Restore of ${snapshotTitle(snapshot)}`);
  const choice: RestoreChoice = { name: name === "" ? undefined : name, ...asked };
  const submit = (): void =>
    call.run(async (onProgress) => {
      const made = await Sandbox.restore(snapshot.id, { client, ...choice, onProgress });
      noteSandbox(made.record);
      return made;
    });
  return (
    <ActionDialog
      title={`Restore ${snapshotTitle(snapshot)}`}
      submit="Restore"
      ready={carried.value?.loadable !== false}
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() => restoreSpellings(snapshot.id, choice)}
      done={(made) => (
        <>
          <p>A new sandbox was created from {snapshotTitle(snapshot)}.</p>
          <NewSandboxes sandboxes={[made]} />
        </>
      )}
    >
      <p class="hint">Creates a new sandbox from the snapshot. The snapshot is kept.</p>
      <NameField label="Name of the new sandbox" value={name} onChange={setName} hint="Optional." />
      <SelectField
        label="Backend"
        value={backend}
        choices={backendChoices(snapshot, backends.value ?? [])}
        onChange={setBackend}
      />
      <section aria-live="polite">
        {carried.error === undefined ? null : <ErrorBox error={carried.error} />}
        {carried.value === undefined ? (
          <p class="hint">{carried.loading ? "Checking what would be restored …" : ""}</p>
        ) : carried.value.loadable ? (
          <CarriedView carried={carried.value} />
        ) : (
          <div class="dialog-warning">
            <p>
              <strong>This backend cannot restore the snapshot.</strong> {carried.value.whyNot}
            </p>
            {carried.value.backends.length === 0 ? null : <p>These can: {carried.value.backends.join(", ")}.</p>}
          </div>
        )}
      </section>
    </ActionDialog>
  );
}

function backendChoices(snapshot: SnapshotRecord, backends: readonly BackendRecord[]): Choice[] {
  return [
    { value: "", text: `Same as captured: ${snapshot.backend}` },
    ...backends
      .filter(({ name }) => name !== snapshot.backend)
      .map(({ name, ok, summary }) => ({ value: name, text: ok ? name : `${name}: ${summary}`, disabled: !ok })),
  ];
}
