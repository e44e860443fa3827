import type { SandboxRecord, SnapshotRecord } from "@sandboxer/client";

export type LineageItem = { readonly key: string; readonly parentKey: string | undefined } & (
  | { readonly kind: "sandbox"; readonly record: SandboxRecord }
  | { readonly kind: "snapshot"; readonly record: SnapshotRecord }
);

export type SandboxItem = LineageItem & { readonly kind: "sandbox" };
export type SnapshotItem = LineageItem & { readonly kind: "snapshot" };

export interface LineageNode {
  readonly item: LineageItem;
  /** Oldest first. */
  readonly children: readonly LineageNode[];
}

/** Sandbox and snapshot ids look alike; keys tell them apart. */
export function sandboxKey(id: string): string {
  return `sandbox:${id}`;
}

export function snapshotKey(id: string): string {
  return `snapshot:${id}`;
}

/**
 * The tree of origins: snapshots below the sandbox they were taken from, sandboxes below the snapshot they were created
 * from. An item whose origin no longer exists is below its nearest existing ancestor, or is a root. Every record is
 * there exactly once, even if records contradict each other. Newest family first.
 */
export function growForest(
  sandboxes: readonly SandboxRecord[],
  snapshots: readonly SnapshotRecord[],
): readonly LineageNode[] {
  const items = linkItems(sandboxes, snapshots);
  const cut = edgesToCut(items);
  const nodes = new Map<string, LineageNode & { readonly children: LineageNode[] }>();
  for (const item of items.values()) nodes.set(item.key, { item, children: [] });
  const roots: LineageNode[] = [];
  for (const item of [...items.values()].toSorted(byAge)) {
    const node = nodes.get(item.key);
    if (node === undefined) continue;
    const parent = item.parentKey === undefined || cut.has(item.key) ? undefined : nodes.get(item.parentKey);
    (parent?.children ?? roots).push(node);
  }
  return roots.toReversed();
}

function linkItems(
  sandboxes: readonly SandboxRecord[],
  snapshots: readonly SnapshotRecord[],
): ReadonlyMap<string, LineageItem> {
  const sandboxIds = new Set(sandboxes.map(({ id }) => id));
  const snapshotOf = new Map(snapshots.map((record) => [record.id, record]));
  const idOfName = new Map(snapshots.flatMap(({ id, name }) => (name === null ? [] : [[name, id] as const])));
  const presentSandbox = (id: string | null): string | undefined =>
    id !== null && sandboxIds.has(id) ? sandboxKey(id) : undefined;
  const presentSnapshot = (idOrName: string | null): string | undefined => {
    if (idOrName === null) return undefined;
    const id = snapshotOf.has(idOrName) ? idOrName : idOfName.get(idOrName);
    return id === undefined ? undefined : snapshotKey(id);
  };
  const items = new Map<string, LineageItem>();
  for (const record of sandboxes) {
    const key = sandboxKey(record.id);
    const parentKey =
      presentSnapshot(beginningOf(record, snapshotOf)) ?? presentSandbox(other(record.origin.sandboxId, record.id));
    items.set(key, { key, kind: "sandbox", record, parentKey });
  }
  for (const record of snapshots) {
    const key = snapshotKey(record.id);
    const parentKey = presentSandbox(record.sandboxId) ?? presentSnapshot(other(record.parent, record.id));
    items.set(key, { key, kind: "snapshot", record, parentKey });
  }
  return items;
}

/** A sandbox that was rewound to its own snapshot keeps the origin of that snapshot. */
function beginningOf({ id, origin }: SandboxRecord, snapshotOf: ReadonlyMap<string, SnapshotRecord>): string | null {
  let snapshotId = origin.snapshotId;
  const seen = new Set<string>();
  while (snapshotId !== null && snapshotOf.get(snapshotId)?.sandboxId === id) {
    if (seen.has(snapshotId)) return null;
    seen.add(snapshotId);
    snapshotId = snapshotOf.get(snapshotId)?.parent ?? null;
  }
  return snapshotId;
}

function other(id: string | null, own: string): string | null {
  return id === own ? null : id;
}

/** The oldest of each cycle, which becomes a root: everyone has one parent, so cycles are disjoint. */
function edgesToCut(items: ReadonlyMap<string, LineageItem>): ReadonlySet<string> {
  const cut = new Set<string>();
  const walked = new Set<string>();
  for (const start of items.values()) {
    const path: LineageItem[] = [];
    const onPath = new Set<string>();
    let at: LineageItem | undefined = start;
    while (at !== undefined && !walked.has(at.key) && !onPath.has(at.key)) {
      path.push(at);
      onPath.add(at.key);
      at = at.parentKey === undefined ? undefined : items.get(at.parentKey);
    }
    if (at !== undefined && onPath.has(at.key)) {
      const circle = path.slice(path.indexOf(at)).toSorted(byAge);
      if (circle[0] !== undefined) cut.add(circle[0].key);
    }
    for (const { key } of path) walked.add(key);
  }
  return cut;
}

function byAge(a: LineageItem, b: LineageItem): number {
  return compare(a.record.createdAt, b.record.createdAt) || compare(a.key, b.key);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
