import type { SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { pinSpellings } from "../../actions/saved-state-actions.ts";
import { snapshotTitle } from "../../dialogs/snapshot-names.ts";
import { noteSnapshot } from "../../live/snapshots.ts";
import { client } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import { CopyAs } from "../../ui/copy-as.tsx";
import { tell, tellError } from "../../ui/toasts.tsx";

/** Pins or unpins a snapshot. */
export function PinButton({ snapshot }: { readonly snapshot: SnapshotRecord }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const word = snapshot.pinned ? "Unpin" : "Pin";
  const press = async (): Promise<void> => {
    setBusy(true);
    try {
      noteSnapshot(await client.snapshots.update(snapshot.id, { pinned: !snapshot.pinned }));
      tell(`${word}: ${snapshotTitle(snapshot)}: done`);
    } catch (thrown) {
      tellError(`${word}: ${snapshotTitle(snapshot)}`, thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <span class="lineage-pin">
      <Button busy={busy} pressed={snapshot.pinned} onClick={() => void press()}>
        {word}
      </Button>
      <CopyAs what={word} spellings={() => pinSpellings(snapshot.id, !snapshot.pinned)} />
    </span>
  );
}
