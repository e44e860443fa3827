import { Sandbox, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { retentionSpellings } from "../actions/saved-state-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import type { Retention } from "../format/retention.ts";
import { noteSandbox } from "../live/sandboxes.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { isKeep, KeepFields, keepOfTexts, textsOfKeep, type KeepTexts } from "./keep-fields.tsx";
import { RetentionPreviewView } from "./retention-preview.tsx";
import { useLongCall } from "./use-long-call.ts";

/** The retention of a sandbox; the effect of a rule is shown before it is saved. */
export function RetentionDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxRecord;
  readonly onClose: () => void;
}): JSX.Element {
  const [checkpoints, setCheckpoints] = useState(textsOfKeep(sandbox.retention?.checkpoints));
  const [snapshots, setSnapshots] = useState(textsOfKeep(sandbox.retention?.snapshots));
  const call = useLongCall<SandboxRecord>(`Retention of ${sandboxTitle(sandbox)}`);
  const ready = isKeep(checkpoints) && isKeep(snapshots);
  const retention = ready ? retentionOf(checkpoints, snapshots) : null;
  const submit = (): void =>
    call.run(async () => {
      const record = await (await Sandbox.attach(sandbox.id, { client, autoResume: false })).update({ retention });
      noteSandbox(record);
      return record;
    });
  return (
    <ActionDialog
      title={`Retention of ${sandboxTitle(sandbox)}`}
      submit="Save"
      ready={ready}
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={ready ? () => retentionSpellings(sandbox.id, retention) : undefined}
      done={() => <p>Saved. Older checkpoints and snapshots are removed at the next save or garbage collection.</p>}
    >
      <KeepFields
        title="Checkpoint retention"
        hint="Keep the newest ones, and the newest of each of the last hours and days. Empty: server default."
        texts={checkpoints}
        onChange={setCheckpoints}
      />
      <KeepFields
        title="Snapshot retention"
        hint="Named and pinned snapshots are always kept. Empty: server default."
        texts={snapshots}
        onChange={setSnapshots}
      />
      {ready ? (
        <RetentionPreviewView sandboxId={sandbox.id} retention={retention} />
      ) : (
        <p class="hint">Enter whole numbers that keep at least one.</p>
      )}
    </ActionDialog>
  );
}

function retentionOf(checkpoints: KeepTexts, snapshots: KeepTexts): Retention | null {
  const [ofCheckpoints, ofSnapshots] = [keepOfTexts(checkpoints), keepOfTexts(snapshots)];
  if (ofCheckpoints === undefined && ofSnapshots === undefined) return null;
  return {
    ...(ofCheckpoints === undefined ? {} : { checkpoints: ofCheckpoints }),
    ...(ofSnapshots === undefined ? {} : { snapshots: ofSnapshots }),
  };
}
