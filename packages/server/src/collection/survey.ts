import type { Retention } from "@sandboxer/protocol";
import { listStoredSandboxes } from "../lease/stored-sandboxes.ts";
import { needsItsSnapshot } from "../lease/stored-head.ts";
import type { ObjectStore } from "../store/store.ts";

/** References in the heads of a store to objects of others. */
export interface Survey {
  readonly sandboxIds: readonly string[];
  /** Servers that own or want a sandbox. */
  readonly namedServers: ReadonlySet<string>;
  /** The sandboxes of each server. */
  readonly ownedBy: ReadonlyMap<string, readonly string[]>;
  /** Images that another sandbox was created from, by {@link imageOf}. */
  readonly referencedImages: ReadonlySet<string>;
  /** Snapshots that are the only state of a sandbox, or that a live one was created from. */
  readonly neededSnapshots: ReadonlySet<string>;
  /** The facts of sandboxes, including deleted ones. */
  readonly retention: ReadonlyMap<string, Retention>;
  /** Whether there are unreadable heads that may reference more. */
  readonly complete: boolean;
}

export function imageOf(sandboxId: string, name: string): string {
  return `${sandboxId} ${name}`;
}

export async function surveyHeads(store: ObjectStore): Promise<Survey> {
  const sandboxIds: string[] = [];
  const namedServers = new Set<string>();
  const ownedBy = new Map<string, string[]>();
  const referencedImages = new Set<string>();
  const neededSnapshots = new Set<string>();
  const retention = new Map<string, Retention>();
  let complete = true;
  for await (const { sandboxId, head, error } of listStoredSandboxes(store)) {
    sandboxIds.push(sandboxId);
    if (error !== undefined) complete = false;
    if (head?.about?.retention != null) retention.set(sandboxId, head.about.retention);
    if (head === undefined || head.state === "deleted") continue;
    if (head.owner !== null) {
      namedServers.add(head.owner);
      const owned = ownedBy.get(head.owner);
      if (owned === undefined) ownedBy.set(head.owner, [sandboxId]);
      else owned.push(sandboxId);
    }
    // Without its record nobody would know that the requester is dead, and its request would block others.
    if (head.want !== null) namedServers.add(head.want.instance_id);
    const { sandbox_id, checkpoint, snapshot } = head.lineage;
    if (snapshot != null && needsItsSnapshot(head)) neededSnapshots.add(snapshot);
    if (sandbox_id !== null && checkpoint !== null) referencedImages.add(imageOf(sandbox_id, checkpoint));
  }
  return { sandboxIds, namedServers, ownedBy, referencedImages, neededSnapshots, retention, complete };
}
