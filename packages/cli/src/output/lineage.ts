import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
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
 * Draws who came from whom: a sandbox has the snapshots that were taken of it below it, a snapshot the sandboxes that
 * began with it. What came from something that is gone stands at the left.
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
  const tops: [string, Node][] = [];
  for (const [id, parentIds] of [
    ...sandboxes.map(({ id, origin }) => [id, [origin.snapshot_id, origin.sandbox_id]] as const),
    ...snapshots.map(({ id, sandbox_id, parent }) => [id, [sandbox_id, parent]] as const),
  ]) {
    const node = nodes.get(id);
    const parent = parentIds
      .map((parentId) => (parentId === null || parentId === id ? undefined : nodes.get(parentId)))
      .find(Boolean);
    if (node === undefined) continue;
    if (parent === undefined) tops.push([id, node]);
    else parent.children.push(node);
  }
  const rootNode = root === undefined ? undefined : nodes.get(root);
  const drawn = rootNode === undefined ? sorted(tops.map(([, node]) => node)) : [rootNode];
  return drawn.map((node) => draw(node, "", new Set())).join("");
}

function draw(node: Node, indent: string, above: ReadonlySet<Node>): string {
  const children = sorted(node.children.filter((child) => !above.has(child)));
  const path = new Set([...above, node]);
  const lines = children.map((child, index) => {
    const last = index === children.length - 1;
    const rest = draw(child, `${indent}${last ? "   " : "│  "}`, path);
    return `${indent}${last ? "└─ " : "├─ "}${rest}`;
  });
  return `${node.line}\n${lines.join("")}`;
}

function sorted(nodes: readonly Node[]): Node[] {
  return nodes.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
}

function sandboxLine({ id, name, state, created_at }: SandboxRecord, paint: Paint): string {
  const shown = name === null ? shortId(id) : `${visible(name)} (${shortId(id)})`;
  return `${paint(shown, "bold")} ${paintState(paint, state)}, ${formatAge(created_at)}`;
}

function snapshotLine(snapshot: SnapshotInfo, paint: Paint): string {
  const { id, name, mode, state, size_bytes, created_at } = snapshot;
  const shown = name === null ? shortId(id) : `${visible(name)} (${shortId(id)})`;
  const problem = state === "ready" ? "" : ` ${paintState(paint, state)}`;
  return `snapshot ${shown}${problem} ${mode}, ${formatBytes(size_bytes)}, ${formatAge(created_at)}`;
}
