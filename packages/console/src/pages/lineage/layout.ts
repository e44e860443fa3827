import { hierarchy, tree } from "d3-hierarchy";
import type { LineageNode } from "./forest.ts";

export const CARD_WIDTH = 212;
export const CARD_HEIGHT = 46;
const COLUMN = CARD_WIDTH + 44;
const ROW = CARD_HEIGHT + 12;

export interface PlacedNode {
  readonly node: LineageNode;
  readonly level: number;
  /** Position of the card's upper left corner. */
  readonly x: number;
  readonly y: number;
}

export interface Layout {
  /** In reading order from top to bottom, parents first. */
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly { readonly from: PlacedNode; readonly to: PlacedNode }[];
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Positions the visible nodes: roots at the left, descendants to their right. */
export function layOut(forest: readonly LineageNode[], isOpen: (node: LineageNode) => boolean): Layout {
  // The trees share one hidden root.
  const root = hierarchy<LineageNode | undefined>(undefined, (node) => {
    if (node === undefined) return forest;
    return isOpen(node) ? node.children : [];
  });
  tree<LineageNode | undefined>()
    .nodeSize([ROW, COLUMN])
    .separation((a, b) => (a.depth === 1 && b.depth === 1 ? 1.25 : 1))(root);
  const nodes: PlacedNode[] = [];
  const placed = new Map<LineageNode, PlacedNode>();
  const edges: { from: PlacedNode; to: PlacedNode }[] = [];
  root.eachBefore(({ data, depth, x = 0, y = 0, parent }) => {
    if (data === undefined) return;
    const place = { node: data, level: depth, x: y - COLUMN, y: x };
    nodes.push(place);
    placed.set(data, place);
    const from = parent?.data === undefined ? undefined : placed.get(parent.data);
    if (from !== undefined) edges.push({ from, to: place });
  });
  return { nodes, edges, ...boundsOf(nodes) };
}

function boundsOf(nodes: readonly PlacedNode[]): Pick<Layout, "left" | "top" | "width" | "height"> {
  let [left, top, right, bottom] = [0, 0, 0, 0];
  for (const [index, { x, y }] of nodes.entries()) {
    left = index === 0 ? x : Math.min(left, x);
    top = index === 0 ? y : Math.min(top, y);
    right = Math.max(right, x + CARD_WIDTH);
    bottom = index === 0 ? y + CARD_HEIGHT : Math.max(bottom, y + CARD_HEIGHT);
  }
  return { left, top, width: right - left, height: bottom - top };
}
