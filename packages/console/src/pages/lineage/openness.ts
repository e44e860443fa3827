import type { LineageNode } from "./forest.ts";
import { walk } from "./select.ts";

/** How much is drawn at once by default. */
const MANY = 300;
/** Deeper levels are opened step by step. */
const DEEPEST = 80;
const MOST_FOUND = 200;

export type Unfolding = "auto" | "all" | "none";

/**
 * The expanded nodes. Small forests are fully expanded; in large ones only the paths to the selected item and search
 * results are. Manual changes are kept.
 */
export function openKeys(
  forest: readonly LineageNode[],
  unfolding: Unfolding,
  byHand: ReadonlyMap<string, boolean>,
  wanted: (node: LineageNode) => boolean,
): ReadonlySet<string> {
  const nodes = [...walk(forest)];
  const open = new Set<string>();
  if (unfolding !== "none" && (unfolding === "all" || nodes.length <= MANY)) {
    for (const { node, level } of nodes) if (level <= DEEPEST) open.add(node.item.key);
  }
  // Also in a collapsed forest: the selected item is visible.
  const above: string[] = [];
  let found = 0;
  for (const { node, level } of nodes) {
    above.length = level - 1;
    if (found < MOST_FOUND && wanted(node)) {
      found += 1;
      for (const key of above) open.add(key);
    }
    above.push(node.item.key);
  }
  for (const [key, isOpen] of byHand) {
    if (isOpen) open.add(key);
    else open.delete(key);
  }
  return open;
}
