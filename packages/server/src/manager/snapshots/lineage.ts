import { sandboxViews } from "../../lease/head-entries.ts";
import type { StoreIndex } from "../../store/index/store-index.ts";
import { needsItsSnapshot } from "../../lease/stored-head.ts";
import type { RemovalContext } from "../room-contexts.ts";

/** A sandbox that was created from a snapshot, or rewound to it. */
export interface Descendant {
  readonly sandboxId: string;
  readonly name: string | null;
  readonly snapshotId: string;
  /** Why the snapshot must be kept for it; undefined: it need not be. */
  readonly needs: string | undefined;
}

/**
 * Every sandbox here or in the store that comes from a snapshot, by snapshot id. `part`: only those of these snapshots,
 * as the index has them. That is for people; a removal must ask all heads.
 */
export async function readDescendants(
  context: RemovalContext,
  part?: { readonly of: readonly string[]; readonly index: StoreIndex },
): Promise<ReadonlyMap<string, readonly Descendant[]>> {
  const found: Descendant[] = [];
  for (const { facts, state } of context.sandboxes.values()) {
    const snapshotId = facts.lineage.snapshot ?? null;
    if (snapshotId === null) continue;
    found.push({ sandboxId: facts.sandboxId, name: facts.about.name, snapshotId, needs: `is ${state} here` });
  }
  const here = new Set(found.map(({ sandboxId }) => sandboxId));
  const { ownership } = context.durable;
  const heads = part === undefined ? ownership.list() : ownership.readViews(part.index, part.of.map(sandboxViews.from));
  for await (const { sandboxId, head } of heads) {
    const snapshotId = head?.lineage.snapshot ?? null;
    if (head === undefined || head.state === "deleted" || snapshotId === null || here.has(sandboxId)) continue;
    // One that is rewound meanwhile may be in two views.
    here.add(sandboxId);
    const why = head.owner === null ? "is paused without a checkpoint of its own" : "runs on another server";
    const needs = needsItsSnapshot(head) ? why : undefined;
    found.push({ sandboxId, name: head.about?.name ?? null, snapshotId, needs });
  }
  return Map.groupBy(found, ({ snapshotId }) => snapshotId);
}
