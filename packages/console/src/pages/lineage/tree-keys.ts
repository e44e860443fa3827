import type { LineageNode } from "./forest.ts";
import type { PlacedNode } from "./layout.ts";

export type TreeMove =
  | { readonly kind: "go"; readonly key: string }
  | { readonly kind: "toggle"; readonly key: string; readonly open: boolean }
  | { readonly kind: "show"; readonly key: string };

/** Keyboard navigation in a tree from left to right: left is to the parent, right to the first child. */
export function moveOf(
  pressed: string,
  nodes: readonly PlacedNode[],
  at: string | undefined,
  isOpen: (node: LineageNode) => boolean,
): TreeMove | undefined {
  const index = nodes.findIndex(({ node }) => node.item.key === at);
  const current = nodes[index];
  const go = (place: number): TreeMove | undefined => {
    const target = nodes[Math.min(nodes.length - 1, Math.max(0, place))];
    return target === undefined ? undefined : { kind: "go", key: target.node.item.key };
  };
  if (current === undefined) {
    return ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "Enter", " "].includes(pressed)
      ? go(0)
      : undefined;
  }
  const { node } = current;
  const { key } = node.item;
  const hasChildren = node.children.length > 0;
  switch (pressed) {
    case "ArrowDown":
      return go(index + 1);
    case "ArrowUp":
      return go(index - 1);
    case "Home":
      return go(0);
    case "End":
      return go(nodes.length - 1);
    case "ArrowRight":
      if (!hasChildren) return undefined;
      return isOpen(node) ? go(index + 1) : { kind: "toggle", key, open: true };
    case "ArrowLeft": {
      const parent = nodes.findLastIndex(({ level }, place) => place < index && level < current.level);
      return parent === -1 ? undefined : go(parent);
    }
    case " ":
      return hasChildren ? { kind: "toggle", key, open: !isOpen(node) } : undefined;
    case "Enter":
      return { kind: "show", key };
    default:
      return undefined;
  }
}
