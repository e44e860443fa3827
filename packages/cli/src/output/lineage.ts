import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { stateWord } from "@sandboxer/protocol/state-word";
import { formatBytes } from "./bytes.ts";
import { type Paint, paintState } from "./colour.ts";
import { shortId } from "./sandboxes.ts";
import { visible } from "./table.ts";
import { formatAge } from "./time.ts";

interface Node {
  readonly line: string;
  readonly createdAt: string;
  readonly children: Node[];
}

/**
 * Draws the tree of origins: snapshots below the sandbox they were taken from, sandboxes below the snapshot they were
 * created from. Items whose origin no longer exists are at the left.
 */
export function formatLineage(
  sandboxes: readonly SandboxRecord[],
  snapshots: readonly SnapshotInfo[],
  paint: Paint,
  root?: string,
): string {
  const nodes = new Map<string, Node>();
  for (const sandbox of sandboxes) {
    nodes.set(sandbox.id, { line: sandboxLine(sandbox, paint), createdAt: sandbox.created_at, children: [] });
  }
  for (const snapshot of snapshots) {
    nodes.set(snapshot.id, { line: snapshotLine(snapshot, paint), createdAt: snapshot.created_at, children: [] });
  }
  const parents = new Map<string, string>();
  const tops: Node[] = [];
  // Snapshots first: a sandbox that was rewound to its own snapshot is still above it.
  for (const [id, parentIds] of [
    ...snapshots.map(({ id, sandbox_id, parent }) => [id, [sandbox_id, parent]] as const),
    ...sandboxes.map(({ id, origin }) => [id, [origin.snapshot_id, origin.sandbox_id]] as const),
  ]) {
    const node = nodes.get(id);
    const parentId = parentIds.find((each) => each !== null && nodes.has(each) && !isBelow(parents, each, id));
    if (node === undefined) continue;
    if (parentId == null) tops.push(node);
    else {
      parents.set(id, parentId);
      nodes.get(parentId)?.children.push(node);
    }
  }
  const rootNode = root === undefined ? undefined : nodes.get(root);
  const drawn = rootNode === undefined ? sorted(tops) : [rootNode];
  return drawn.map((node) => draw(node, "")).join("");
}

/** Whether an id is another one, or its descendant. */
function isBelow(parents: ReadonlyMap<string, string>, id: string, other: string): boolean {
  for (let at: string | undefined = id; at !== undefined; at = parents.get(at)) {
    if (at === other) return true;
  }
  return false;
}

function draw(node: Node, indent: string): string {
  const children = sorted(node.children);
  const lines = children.map((child, index) => {
    const last = index === children.length - 1;
    const rest = draw(child, `${indent}${last ? "   " : "│  "}`);
    return `${indent}${last ? "└─ " : "├─ "}${rest}`;
  });
  return `${node.line}\n${lines.join("")}`;
}

function sorted(nodes: readonly Node[]): Node[] {
  return nodes.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
}

function sandboxLine({ id, name, state, created_at }: SandboxRecord, paint: Paint): string {
  const shown = name === null ? shortId(id) : `${visible(name)} (${shortId(id)})`;
  return `${paint(shown, "bold")} ${paintState(paint, stateWord(state))}, ${formatAge(created_at)}`;
}

function snapshotLine(snapshot: SnapshotInfo, paint: Paint): string {
  const { id, name, mode, state, size_bytes, created_at } = snapshot;
  const shown = name === null ? shortId(id) : `${visible(name)} (${shortId(id)})`;
  const problem = state === "ready" ? "" : ` ${paintState(paint, state)}`;
  return `snapshot ${shown}${problem} ${mode}, ${formatBytes(size_bytes)}, ${formatAge(created_at)}`;
}
