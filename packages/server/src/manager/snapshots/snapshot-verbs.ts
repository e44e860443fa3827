import {
  type Carried,
  type ProvenCheckpoint,
  type RestoreRequestBody,
  type SnapshotDiff,
  type SnapshotInfo,
  SandboxerError,
} from "@sandboxer/protocol";
import type { KeyOptions } from "../../checkpoints/keys/key-choice.ts";
import type { SnapshotChanges } from "../../checkpoints/snapshot-library.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ManagerContext } from "../context.ts";
import { diffSnapshots } from "./diff.ts";
import { proveCheckpoint } from "../saving/prove-checkpoint.ts";
import { proveSnapshot } from "../saving/prove-snapshot.ts";
import { live, type LiveSandbox } from "../live-sandbox.ts";
import type { GivenOut, Sandbox } from "../sandbox.ts";
import { explainRestore } from "./portable/carried.ts";
import { removeSnapshot } from "./remove-snapshot.ts";
import { restoreSnapshot, type RestoredSandbox } from "./restore-snapshot.ts";
import { sandboxToCapture } from "./sandbox-to-capture.ts";
import { captureSnapshot, type CaptureRequest } from "./capture.ts";
import { amendSnapshot, describeNew, getSnapshot, listSnapshots, type SnapshotFilter } from "./snapshot-records.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";
import { checkSnapshotName } from "../../checkpoints/snapshot-record.ts";

/** States of sandboxes that are kept for themselves. */
export class SnapshotVerbs {
  readonly #context: ManagerContext;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** Captures a sandbox, which goes on. One that nobody runs is made to run here first. */
  async capture(
    sandboxId: string,
    epoch: number | undefined,
    request: CaptureRequest,
    options?: VerbOptions,
  ): Promise<SnapshotInfo> {
    const sandbox = await sandboxToCapture(this.#context, sandboxId, epoch, request, options);
    const { snapshot } = await captureSnapshot(this.#context, sandbox, request, options);
    return describeNew(snapshot);
  }

  /** For the WebSocket protocol: the files of a sandbox, under a name. */
  captureFilesystem(sandbox: Sandbox, name: string, options?: CallOptions): Promise<void> {
    return snapshotFilesystem(this.#context, live(sandbox), name, options);
  }

  list(filter: SnapshotFilter): Promise<SnapshotInfo[]> {
    return listSnapshots(this.#context, filter);
  }

  get(idOrName: string, options?: CallOptions & KeyOptions & { readonly verify?: boolean }): Promise<SnapshotInfo> {
    return getSnapshot(this.#context, idOrName, options);
  }

  amend(idOrName: string, changes: SnapshotChanges): Promise<SnapshotInfo> {
    return amendSnapshot(this.#context, idOrName, changes);
  }

  remove(idOrName: string): Promise<void> {
    return removeSnapshot(this.#context, idOrName);
  }

  /** Restores a snapshot where nobody can reach it, and says whether it answers. */
  prove(idOrName: string, options?: VerbOptions): Promise<SnapshotInfo> {
    return proveSnapshot(this.#context, idOrName, options);
  }

  /** The same for a checkpoint of a sandbox; absent: its newest. */
  proveCheckpoint(sandboxId: string, checkpoint?: string, options?: VerbOptions): Promise<ProvenCheckpoint> {
    return proveCheckpoint(this.#context, sandboxId, checkpoint, options);
  }

  /** A new sandbox with the state of a snapshot. */
  restore(idOrName: string, body: RestoreRequestBody, options?: VerbOptions): Promise<GivenOut<RestoredSandbox>> {
    return restoreSnapshot(this.#context, idOrName, body, options);
  }

  /** What a restore would carry; nothing is done. */
  explainRestore(idOrName: string, body: Pick<RestoreRequestBody, "backend">): Promise<Carried> {
    return explainRestore(this.#context, idOrName, body);
  }

  diff(from: string, to: string, limit: number, options?: KeyOptions): Promise<SnapshotDiff> {
    return diffSnapshots(this.#context, from, to, limit, options);
  }
}

/**
 * Saves the files of a sandbox under a name, for new sandboxes to start from. The sandbox goes on. The name goes over in
 * one step, and what had it before goes, unless it is pinned, or a sandbox that is there began with it.
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
