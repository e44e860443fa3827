import type { SandboxRecord } from "@sandboxer/client";
import { sandboxes } from "../live/sandboxes.ts";
import { server, type Scope } from "../session.ts";
import { openDialog } from "./dialog-request.ts";

/** Actions with a dialog: offered by buttons, menus and the palette alike. */
export interface SandboxDialog {
  readonly name: string;
  readonly scope: Scope;
  applies(record: SandboxRecord): boolean;
  open(record: SandboxRecord): void;
}

const isThere = ({ state }: SandboxRecord): boolean => state === "running" || state === "stored";
const runs = ({ state }: SandboxRecord): boolean => state === "running";

export const snapshotDialog: SandboxDialog = {
  name: "Snapshot …",
  scope: "use",
  applies: isThere,
  open: (sandbox) => openDialog({ what: "snapshot", sandbox }),
};

export const forkDialog: SandboxDialog = {
  name: "Fork …",
  scope: "use",
  applies: runs,
  open: (sandbox) => openDialog({ what: "fork", sandbox }),
};

export const rewindDialog: SandboxDialog = {
  name: "Rewind …",
  scope: "use",
  applies: runs,
  open: (sandbox) => openDialog({ what: "rewind", sandbox }),
};

export const promoteDialog: SandboxDialog = {
  name: "Promote …",
  scope: "use",
  // The original may have been deleted; then there is nothing to promote it into.
  applies: (record) => isThere(record) && sandboxes.value.has(record.origin.sandboxId ?? ""),
  open: (sandbox) => openDialog({ what: "promote", sandbox }),
};

export const handoffDialog: SandboxDialog = {
  name: "Hand off …",
  scope: "use",
  // Without a store there is no other server.
  applies: (record) => runs(record) && record.epoch !== null && server.value?.store != null,
  open: (sandbox) => openDialog({ what: "handoff", sandbox }),
};

export const moveDialog: SandboxDialog = {
  name: "Move to another backend …",
  scope: "use",
  applies: runs,
  open: (sandbox) => openDialog({ what: "move", sandbox }),
};

export const renameDialog: SandboxDialog = {
  name: "Rename …",
  scope: "use",
  applies: isThere,
  open: (sandbox) => openDialog({ what: "rename", sandbox }),
};

export const labelsDialog: SandboxDialog = {
  name: "Labels …",
  scope: "use",
  applies: isThere,
  open: (sandbox) => openDialog({ what: "labels", sandbox }),
};

export const verifyDialog: SandboxDialog = {
  name: "Verify …",
  scope: "use",
  applies: (record) => isThere(record) && record.checkpoint !== null,
  open: (sandbox) => openDialog({ what: "verify", sandbox }),
};

export const retentionDialog: SandboxDialog = {
  name: "Retention …",
  scope: "use",
  // A sandbox that is not stored has no saved states to remove.
  applies: (record) => isThere(record) && record.epoch !== null,
  open: (sandbox) => openDialog({ what: "retention", sandbox }),
};

export const SANDBOX_DIALOGS: readonly SandboxDialog[] = [
  snapshotDialog,
  forkDialog,
  rewindDialog,
  promoteDialog,
  handoffDialog,
  moveDialog,
  renameDialog,
  labelsDialog,
  verifyDialog,
  retentionDialog,
];
