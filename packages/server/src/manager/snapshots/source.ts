import { type Encryption, type Lineage, SandboxerError } from "@sandboxer/protocol";
import type { PreparedState, SandboxBackend } from "../../backends/backend.ts";
import { snapshotNotFound } from "../../checkpoints/snapshot-types.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { LoadedState, UnpackOptions } from "../../checkpoints/unpacked-state.ts";
import type { ManagerContext } from "../context.ts";
import type { LibraryContext } from "../room-contexts.ts";
import { checkLoadable, loadWay } from "./portable/loadable.ts";
import type { StateLabel } from "./portable/workspace-archive.ts";

/** A saved state that a new sandbox starts from. */
export interface SandboxSource {
  readonly lineage: Lineage;
  /** The encryption key of the state; null: the server's default. */
  readonly encryption: Encryption | null;
  /** Throws if the backend cannot load the state, before anything is done. */
  check(backend: SandboxBackend): void;
  /** The part that a backend may preload; undefined: nothing, for example if it will not be requested again. */
  ahead?(backend: SandboxBackend): PreparedState | undefined;
  /** Puts the state into an empty folder. */
  load(folder: string, options: UnpackOptions): Promise<LoadedState>;
  /** Throws if the state no longer exists. */
  confirm(): Promise<void>;
}

/** The state of a snapshot that others may restore too. */
export function popularSource(context: ManagerContext, snapshot: StoredSnapshot, name?: string): SandboxSource {
  const source = sourceOf(context, snapshot, name);
  const { id, size_bytes: sizeBytes } = snapshot;
  const state: PreparedState = { id, sizeBytes, load: (folder, options) => source.load(folder, options) };
  const isNative = (backend: SandboxBackend): boolean => loadWay(backend, labelOf(snapshot)) === "native";
  // A state that only its client can decrypt is not preloaded.
  const isForAll = source.encryption?.held_by !== "client";
  return { ...source, ahead: (backend) => (isForAll && isNative(backend) ? state : undefined) };
}

/** The state of a snapshot, for a new sandbox. */
export function sourceOf(context: ManagerContext, snapshot: StoredSnapshot, name?: string): SandboxSource {
  const { id, sandbox_id } = snapshot;
  return {
    encryption: snapshot.encryption ?? null,
    check: (backend) => void checkLoadable(context, backend, labelOf(snapshot)),
    lineage: { sandbox_id, checkpoint: null, filesystem_snapshot: name ?? null, snapshot: id },
    load: (folder, options) => context.snapshots.load(id, folder, options),
    confirm: async () => void (await findSnapshot(context, id)),
  };
}

/** The state of a fork's snapshot, for one of its copies. */
export function forkSource(context: ManagerContext, snapshot: StoredSnapshot): SandboxSource {
  const source = sourceOf(context, snapshot);
  return { ...source, lineage: { ...source.lineage, fork: snapshot.id } };
}

/** The facts of a snapshot's record about its state. */
export function labelOf({ kind, requirements, backend: from }: StoredSnapshot): StateLabel {
  return { kind, requirements: requirements ?? {}, from };
}

/** Uses the snapshot that has the name now; tries once more if it was replaced meanwhile. */
export async function withNamedSource<Result>(
  context: ManagerContext,
  idOrName: string,
  begin: (source: SandboxSource) => Promise<Result>,
): Promise<Result> {
  for (let tried: string | undefined; ;) {
    const snapshot = await context.snapshots.get(idOrName);
    if (snapshot === undefined) {
      throw new SandboxerError("snapshot_not_found", `Filesystem snapshot not found: ${idOrName.slice(0, 150)}`);
    }
    try {
      return await begin(popularSource(context, snapshot, idOrName));
    } catch (error) {
      const hasGone = error instanceof SandboxerError && error.code === "snapshot_not_found";
      if (!hasGone || snapshot.id === tried) throw error;
      tried = snapshot.id;
    }
  }
}

export async function findSnapshot(context: LibraryContext, idOrName: string): Promise<StoredSnapshot> {
  const found = await context.snapshots.get(idOrName);
  if (found === undefined) throw snapshotNotFound(idOrName);
  return found;
}
