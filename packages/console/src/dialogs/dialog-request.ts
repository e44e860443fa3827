import { signal } from "@preact/signals";
import type { SandboxRecord, SnapshotRecord } from "@sandboxer/client";

/** A dialog that a page requests, by its subject. */
export type DialogRequest =
  | {
      readonly what:
        | "snapshot"
        | "fork"
        | "promote"
        | "handoff"
        | "move"
        | "rename"
        | "labels"
        | "verify"
        | "retention";
      readonly sandbox: SandboxRecord;
    }
  | { readonly what: "rewind"; readonly sandbox: SandboxRecord; readonly snapshotId?: string }
  | {
      readonly what: "restore" | "describe snapshot" | "delete snapshot" | "verify snapshot" | "prove snapshot";
      readonly snapshot: SnapshotRecord;
    };

export const dialogRequest = signal<DialogRequest | undefined>(undefined);

export function openDialog(request: DialogRequest): void {
  dialogRequest.value = request;
}

/** Only the current one: a dialog may report its end after another has replaced it. */
export function closeDialog(request: DialogRequest): void {
  if (dialogRequest.peek() === request) dialogRequest.value = undefined;
}
