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

/** Every sandbox here or in the store that comes from a snapshot, by snapshot id. */
export async function readDescendants(context: RemovalContext): Promise<ReadonlyMap<string, readonly Descendant[]>> {
  const found: Descendant[] = [];
  for (const { facts, state } of context.sandboxes.values()) {
    const snapshotId = facts.lineage.snapshot ?? null;
    if (snapshotId === null) continue;
    found.push({ sandboxId: facts.sandboxId, name: facts.about.name, snapshotId, needs: `is ${state} here` });
  }
  const here = new Set(found.map(({ sandboxId }) => sandboxId));
  for await (const { sandboxId, head } of context.durable.ownership.list()) {
    const snapshotId = head?.lineage.snapshot ?? null;
    if (head === undefined || head.state === "deleted" || snapshotId === null || here.has(sandboxId)) continue;
    const why = head.owner === null ? "is paused without a checkpoint of its own" : "runs on another server";
    const needs = needsItsSnapshot(head) ? why : undefined;
    found.push({ sandboxId, name: head.about?.name ?? null, snapshotId, needs });
  }
  return Map.groupBy(found, ({ snapshotId }) => snapshotId);
}
