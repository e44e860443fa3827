import type { JSX } from "preact";
import { DeleteSnapshotDialog } from "./delete-snapshot-dialog.tsx";
import { DescribeSnapshotDialog } from "./describe-snapshot-dialog.tsx";
import type { DialogRequest } from "./dialog-request.ts";
import { ForkDialog } from "./fork-dialog.tsx";
import { HandoffDialog } from "./handoff-dialog.tsx";
import { LabelsDialog } from "./labels-dialog.tsx";
import { MoveDialog } from "./move-dialog.tsx";
import { PromoteDialog } from "./promote-dialog.tsx";
import { ProveDialog } from "./prove-dialog.tsx";
import { RenameDialog } from "./rename-dialog.tsx";
import { RestoreDialog } from "./restore-dialog.tsx";
import { RetentionDialog } from "./retention-dialog.tsx";
import { RewindDialog } from "./rewind-dialog.tsx";
import { SnapshotDialog } from "./snapshot-dialog.tsx";
import { VerifyDialog } from "./verify-dialog.tsx";
import "./dialogs.css";

export function RequestedDialog({
  request,
  onClose,
}: {
  readonly request: DialogRequest;
  readonly onClose: () => void;
}): JSX.Element {
  switch (request.what) {
    case "snapshot":
      return <SnapshotDialog sandbox={request.sandbox} onClose={onClose} />;
    case "fork":
      return <ForkDialog sandbox={request.sandbox} onClose={onClose} />;
    case "rewind":
      return <RewindDialog sandbox={request.sandbox} snapshotId={request.snapshotId} onClose={onClose} />;
    case "promote":
      return <PromoteDialog sandbox={request.sandbox} onClose={onClose} />;
    case "handoff":
      return <HandoffDialog sandbox={request.sandbox} onClose={onClose} />;
    case "move":
      return <MoveDialog sandbox={request.sandbox} onClose={onClose} />;
    case "rename":
      return <RenameDialog sandbox={request.sandbox} onClose={onClose} />;
    case "labels":
      return <LabelsDialog sandbox={request.sandbox} onClose={onClose} />;
    case "verify":
      return <VerifyDialog target={request} onClose={onClose} />;
    case "retention":
      return <RetentionDialog sandbox={request.sandbox} onClose={onClose} />;
    case "verify snapshot":
      return <VerifyDialog target={request} onClose={onClose} />;
    case "prove snapshot":
      return <ProveDialog snapshot={request.snapshot} onClose={onClose} />;
    case "restore":
      return <RestoreDialog snapshot={request.snapshot} onClose={onClose} />;
    case "describe snapshot":
      return <DescribeSnapshotDialog snapshot={request.snapshot} onClose={onClose} />;
    case "delete snapshot":
      return <DeleteSnapshotDialog snapshot={request.snapshot} onClose={onClose} />;
  }
}
