import type { LineageItem, LineageNode } from "./forest.ts";

/** Every node of some trees in reading order, with its depth. Not recursive, because chains may be long. */
export function* walk(
  nodes: readonly LineageNode[],
  enter: (node: LineageNode) => boolean = () => true,
): Generator<{ readonly node: LineageNode; readonly level: number }, void, undefined> {
  const open = nodes.toReversed().map((node) => ({ node, level: 1 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    yield next;
    const { node, level } = next;
    if (enter(node)) for (const child of node.children.toReversed()) open.push({ node: child, level: level + 1 });
  }
}

export function countNodes(nodes: readonly LineageNode[]): number {
  let count = 0;
  for (const _ of walk(nodes)) count += 1;
  return count;
}

/** The trees with search results. */
export function matchingFamilies(forest: readonly LineageNode[], search: string): readonly LineageNode[] {
  const text = search.trim().toLowerCase();
  if (text === "") return forest;
  return forest.filter((family) => [...walk([family])].some(({ node }) => matches(node.item, text)));
}

/** Whether its name, id, backend or a label contains the text, which is in lower case. */
export function matches({ record }: LineageItem, text: string): boolean {
  const words = [record.name ?? "", record.id, record.backend, ...Object.entries(record.labels).flat()];
  return words.some((word) => word.toLowerCase().includes(text));
}

/** The tree that a key is in, and the keys above it. */
export function findPath(forest: readonly LineageNode[], key: string): readonly LineageNode[] | undefined {
  const parents = new Map<LineageNode, LineageNode>();
  for (const { node } of walk(forest)) {
    for (const child of node.children) parents.set(child, node);
    if (node.item.key !== key) continue;
    const path: LineageNode[] = [];
    for (let at: LineageNode | undefined = node; at !== undefined; at = parents.get(at)) path.unshift(at);
    return path;
  }
  return undefined;
}
