import type { Keep, Retention } from "@sandboxer/protocol";
import type { CheckpointRepository } from "../checkpoints/checkpoint-repository.ts";
import type { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import type { UnpublishedCheckpoints } from "../checkpoints/unpublished/unpublished-checkpoints.ts";
import type { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import type { KeyClaims } from "../lease/key-claims.ts";
import type { Ownership } from "../lease/ownership.ts";
import type { IntegrityStore } from "./observing/integrity/integrity-context.ts";

/** Every server has these: ownership and saved states. */
export interface DurableStore {
  /** Whether sandboxes can be saved to it. Without a configured store it only holds heads and records. */
  readonly saves: boolean;
  readonly ownership: Ownership;
  /** Maps a key to its sandbox. */
  readonly claims: KeyClaims;
  readonly checkpoints: CheckpointRepository;
  readonly snapshots: SnapshotRepository;
  /** Checkpoints that servers of this machine could not publish before they ended. */
  readonly unpublished: UnpublishedCheckpoints;
  /** The encryption keys of saved states; absent: no encryption. */
  readonly keys?: StoredDataKeys;
  /** Scrubs all of the store; absent: not possible. */
  readonly integrity?: IntegrityStore | undefined;
  /** Retention of sandboxes that do not set it. Without a rule for snapshots all of them are kept. */
  readonly retention: Retention & { readonly checkpoints: Keep };
}
