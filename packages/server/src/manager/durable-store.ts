import type { CheckpointRepository } from "../checkpoints/checkpoint-repository.ts";
import type { SnapshotLibrary } from "../checkpoints/snapshot-library.ts";
import type { Ownership } from "../lease/ownership.ts";

/** What a server with a store has: who owns what, and the saved states. */
export interface DurableStore {
  readonly ownership: Ownership;
  readonly checkpoints: CheckpointRepository;
  readonly snapshots: SnapshotLibrary;
  /** How many checkpoints of a sandbox stay. */
  readonly keepCheckpoints: number;
}
