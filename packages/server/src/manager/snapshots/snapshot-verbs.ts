import type { Carried, ProvenCheckpoint, RestoreRequestBody, SnapshotDiff, SnapshotInfo } from "@sandboxer/protocol";
import type { KeyOptions } from "../../checkpoints/keys/key-choice.ts";
import type { SnapshotChanges } from "../../checkpoints/snapshot-library.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ManagerContext } from "../context.ts";
import { diffSnapshots } from "./diff.ts";
import { proveCheckpoint } from "../saving/prove-checkpoint.ts";
import { proveSnapshot } from "../saving/prove-snapshot.ts";
import { live } from "../live-sandbox.ts";
import type { GivenOut, Sandbox } from "../sandbox.ts";
import { explainRestore } from "./portable/carried.ts";
import { snapshotFilesystem } from "./snapshot-filesystem.ts";
import { removeSnapshot } from "./remove-snapshot.ts";
import { restoreSnapshot, type RestoredSandbox } from "./restore-snapshot.ts";
import { sandboxToCapture } from "./sandbox-to-capture.ts";
import { captureSnapshot, type CaptureRequest } from "./capture.ts";
import { amendSnapshot, describeNew, getSnapshot, listSnapshots, type SnapshotFilter } from "./snapshot-records.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

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
