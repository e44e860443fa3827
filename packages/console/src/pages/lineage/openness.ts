import type { LineageNode } from "./forest.ts";
import { walk } from "./select.ts";

/** As much as is drawn at once without being asked for. */
const MANY = 300;
/** Deeper, a person opens what is wanted step by step. */
const DEEPEST = 80;
const MOST_FOUND = 200;

export type Unfolding = "auto" | "all" | "none";

/**
 * Which nodes show what came from them. Small forests are open; of large ones only the ways to what is looked at and to
 * what was searched for. What a person has opened or closed by hand stays so.
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
  // Also in a forest that is closed: what is wanted can be seen.
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
