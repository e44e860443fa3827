import { type RestoreRequestBody, type SnapshotInfo, SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import type { ManagerContext } from "../context.ts";
import { diffSnapshots } from "./diff.ts";
import { proveCheckpoint } from "../saving/prove-checkpoint.ts";
import { proveSnapshot } from "../saving/prove-snapshot.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { Room } from "../room.ts";
import type { GivenOut } from "../sandbox.ts";
import { explainRestore } from "./portable/carried.ts";
import { removeSnapshot } from "./remove-snapshot.ts";
import { restoreSnapshot, type RestoredSandbox } from "./restore-snapshot.ts";
import { sandboxToCapture } from "./sandbox-to-capture.ts";
import { captureSnapshot, type CaptureRequest } from "./capture.ts";
import { amendSnapshot, describeNew, getSnapshot, listSnapshots } from "./snapshot-records.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { checkSnapshotName } from "../../checkpoints/snapshot-record.ts";

/** Operations on snapshots. */
export class SnapshotVerbs extends Room<ManagerContext> {
  /** For the WebSocket protocol: the files of a sandbox, under a name. */
  readonly captureFilesystem = this.verbOn(snapshotFilesystem);
  readonly list = this.verb(listSnapshots);
  readonly get = this.verb(getSnapshot);
  readonly amend = this.verb(amendSnapshot);
  readonly remove = this.verb(removeSnapshot);
  /** Test-restores a snapshot in isolation. */
  readonly prove = this.verb(proveSnapshot);
  /** Test-restores a checkpoint of a sandbox; absent: its newest. */
  readonly proveCheckpoint = this.verb(proveCheckpoint);
  /** Previews what a restore would bring back. */
  readonly explainRestore = this.verb(explainRestore);
  readonly diff = this.verb(diffSnapshots);

  /** Takes a snapshot of a sandbox, which keeps running. A paused sandbox is resumed here first. */
  async capture(
    sandboxId: string,
    epoch: number | undefined,
    request: CaptureRequest,
    options?: VerbOptions,
  ): Promise<SnapshotInfo> {
    const sandbox = await sandboxToCapture(this.context, sandboxId, epoch, request, options);
    const { snapshot } = await captureSnapshot(this.context, sandbox, request, options);
    return describeNew(snapshot);
  }

  /** Creates a new sandbox from a snapshot. */
  restore(
    idOrName: string,
    body: RestoreRequestBody,
    options?: VerbOptions,
    manner?: { readonly isFork: boolean },
  ): Promise<GivenOut<RestoredSandbox>> {
    return restoreSnapshot(this.context, idOrName, body, options, manner);
  }
}

/**
 * Saves the files of a sandbox under a name, for new sandboxes to start from. The sandbox keeps running. The name moves
 * in one step, and the snapshot that had it is removed, unless it is pinned or an existing sandbox was created from it.
 */
async function snapshotFilesystem(
  context: ManagerContext,
  sandbox: LiveSandbox,
  name: string,
  options: CallOptions = {},
): Promise<void> {
  if (!context.durable.saves)
    throw new SandboxerError("checkpoint_disabled", "Filesystem snapshot is not enabled on the server.");
  checkSnapshotName(name);
  const request = { reason: "named", name, mode: "filesystem", replaceName: true } as const;
  const { replacedId } = await captureSnapshot(context, sandbox, request, options);
  if (replacedId === undefined) return;
  await removeSnapshot(context, replacedId).catch((error: unknown) => {
    const stays = ["snapshot_in_use", "snapshot_pinned", "snapshot_not_found"];
    const expected = error instanceof SandboxerError && stays.includes(error.code);
    if (!expected) context.options.observer.problem("removal of a replaced snapshot", { error });
  });
}
