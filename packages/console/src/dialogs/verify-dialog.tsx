import { Sandbox, type IntegrityReport, type SandboxRecord, type SnapshotRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { verifySandboxSpellings, verifySnapshotSpellings } from "../actions/saved-state-actions.ts";
import { sandboxTitle } from "../format/names.ts";
import { noteVerified } from "../live/damage.ts";
import { loadSnapshots } from "../live/snapshots.ts";
import { client } from "../session.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { IntegrityView } from "./integrity-view.tsx";
import { snapshotTitle } from "./snapshot-names.ts";
import { useLongCall } from "./use-long-call.ts";

type Verified = { readonly sandbox: SandboxRecord } | { readonly snapshot: SnapshotRecord };

/** Checks every block of saved data, and shows the result. */
export function VerifyDialog({
  target,
  onClose,
}: {
  readonly target: Verified;
  readonly onClose: () => void;
}): JSX.Element {
  const title = "sandbox" in target ? sandboxTitle(target.sandbox) : snapshotTitle(target.snapshot);
  const call = useLongCall<IntegrityReport>(`Verification of ${title}`);
  const submit = (): void =>
    call.run(async (onProgress) => {
      if ("snapshot" in target) {
        const found = await client.snapshots.verify(target.snapshot.id, { onProgress });
        // Other snapshots with the same damage are marked, too.
        void loadSnapshots();
        return found;
      }
      const { id } = target.sandbox;
      const found = await (await Sandbox.attach(id, { client, autoResume: false })).verify({ onProgress });
      noteVerified(id, found);
      return found;
    });
  return (
    <ActionDialog
      title={`Verify ${title}`}
      submit="Verify"
      onClose={onClose}
      call={call}
      onSubmit={submit}
      spellings={() =>
        "sandbox" in target ? verifySandboxSpellings(target.sandbox.id) : verifySnapshotSpellings(target.snapshot.id)
      }
      done={(report) => <IntegrityView report={report} />}
    >
      <p>
        {"sandbox" in target
          ? "Reads every block of the sandbox's checkpoints and compares it with its digest. The sandbox is not resumed."
          : "Reads every block of the snapshot and compares it with its digest."}
      </p>
      <p class="hint">This reads all of that data from the store.</p>
    </ActionDialog>
  );
}
