import type { Keep, Retention } from "@sandboxer/protocol";
import type { CheckpointRepository } from "../checkpoints/checkpoint-repository.ts";
import type { SnapshotRepository } from "../checkpoints/snapshot-repository.ts";
import type { UnpublishedCheckpoints } from "../checkpoints/unpublished/unpublished-checkpoints.ts";
import type { StoredDataKeys } from "../checkpoints/keys/stored-data-keys.ts";
import type { KeyClaims } from "../lease/key-claims.ts";
import type { Ownership } from "../lease/ownership.ts";
import type { IntegrityStore } from "./observing/integrity/integrity-context.ts";

/** What every server has: who owns what, and the saved states. */
export interface DurableStore {
  /** Whether sandboxes can be saved to it. Without a configured store it is only where heads and records are. */
  readonly saves: boolean;
  readonly ownership: Ownership;
  /** Which sandbox a key stands for. */
  readonly claims: KeyClaims;
  readonly checkpoints: CheckpointRepository;
  readonly snapshots: SnapshotRepository;
  /** What servers of this machine could not bring to the store before they ended. */
  readonly unpublished: UnpublishedCheckpoints;
  /** What they are encrypted with; absent: nothing is. */
  readonly keys?: StoredDataKeys;
  /** For looks at all of it; absent: none are possible. */
  readonly integrity?: IntegrityStore | undefined;
  /** What stays of sandboxes that do not say; without a rule for snapshots all of them do. */
  readonly retention: Retention & { readonly checkpoints: Keep };
}
