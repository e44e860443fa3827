import type { JSX } from "preact";
import { openDialog } from "../../dialogs/dialog-request.ts";
import {
  forkDialog,
  promoteDialog,
  renameDialog,
  retentionDialog,
  rewindDialog,
  snapshotDialog,
  verifyDialog,
} from "../../dialogs/sandbox-dialogs.ts";
import { sandboxes } from "../../live/sandboxes.ts";
import { Link } from "../../router.tsx";
import { may } from "../../session.ts";
import { Button } from "../../ui/button.tsx";
import type { SandboxItem, SnapshotItem } from "./forest.ts";
import { PinButton } from "./pin-button.tsx";

/** Actions on a node. */
export function SandboxButtons({ item: { record } }: { readonly item: SandboxItem }): JSX.Element {
  const dialogs = [
    promoteDialog,
    snapshotDialog,
    forkDialog,
    rewindDialog,
    renameDialog,
    verifyDialog,
    retentionDialog,
  ];
  return (
    <>
      <Link to={`/sandboxes/${encodeURIComponent(record.id)}`} class="button">
        Open
      </Link>
      {dialogs
        .filter((dialog) => may(dialog.scope) && dialog.applies(record))
        .map((dialog) => (
          <Button key={dialog.name} onClick={() => dialog.open(record)}>
            {dialog.name}
          </Button>
        ))}
    </>
  );
}

export function SnapshotButtons({ item: { record } }: { readonly item: SnapshotItem }): JSX.Element | null {
  if (!may("use")) return null;
  const captured = sandboxes.value.get(record.sandboxId);
  return (
    <>
      <Button kind="primary" onClick={() => openDialog({ what: "restore", snapshot: record })}>
        Restore …
      </Button>
      {captured !== undefined && rewindDialog.applies(captured) ? (
        <Button onClick={() => openDialog({ what: "rewind", sandbox: captured, snapshotId: record.id })}>
          Rewind its sandbox …
        </Button>
      ) : null}
      <Button onClick={() => openDialog({ what: "describe snapshot", snapshot: record })}>Name and labels …</Button>
      <PinButton snapshot={record} />
      <Button onClick={() => openDialog({ what: "verify snapshot", snapshot: record })}>Verify …</Button>
      <Button onClick={() => openDialog({ what: "prove snapshot", snapshot: record })}>Prove …</Button>
      <Button kind="danger" onClick={() => openDialog({ what: "delete snapshot", snapshot: record })}>
        Delete …
      </Button>
    </>
  );
}
