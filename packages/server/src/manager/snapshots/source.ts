import { type Encryption, type Lineage, SandboxerError } from "@sandboxer/protocol";
import type { PreparedState, SandboxBackend } from "../../backends/backend.ts";
import { snapshotNotFound } from "../../checkpoints/snapshot-types.ts";
import type { StoredSnapshot } from "../../checkpoints/snapshot-record.ts";
import type { LoadedState, UnpackOptions } from "../../checkpoints/unpacked-state.ts";
import type { ManagerContext } from "../context.ts";
import type { LibraryContext } from "../room-contexts.ts";
import { checkLoadable, loadWay } from "./portable/loadable.ts";
import type { StateLabel } from "./portable/workspace-archive.ts";

/** A saved state that a new sandbox begins with. */
export interface SandboxSource {
  readonly lineage: Lineage;
  /** What the state is under; null: as its server said. */
  readonly encryption: Encryption | null;
  /** Throws when the backend cannot load the state, before anything was done. */
  check(backend: SandboxBackend): void;
  /** What a backend may load of it ahead of the need; undefined: nothing, such as where nobody will ask for it again. */
  ahead?(backend: SandboxBackend): PreparedState | undefined;
  /** Puts the state into an empty folder. */
  load(folder: string, options: UnpackOptions): Promise<LoadedState>;
  /** Throws when the state is no longer there to begin with. */
  confirm(): Promise<void>;
}

/** The state of a snapshot that others may ask for too. */
export function popularSource(context: ManagerContext, snapshot: StoredSnapshot, name?: string): SandboxSource {
  const source = sourceOf(context, snapshot, name);
  const { id, size_bytes: sizeBytes } = snapshot;
  const state: PreparedState = { id, sizeBytes, load: (folder, options) => source.load(folder, options) };
  const isNative = (backend: SandboxBackend): boolean => loadWay(backend, labelOf(snapshot)) === "native";
  // What only its client can open is loaded for nobody who has not shown the key.
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

/** What the record of a snapshot says of its state. */
export function labelOf({ kind, requirements, backend: from }: StoredSnapshot): StateLabel {
  return { kind, requirements: requirements ?? {}, from };
}

/** Begins with what has the name now; once more when that was replaced on the way. */
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
