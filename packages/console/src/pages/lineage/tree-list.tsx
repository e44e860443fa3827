import type { JSX } from "preact";
import { Badges } from "../../ui/badges.tsx";
import { Button } from "../../ui/button.tsx";
import { isLive, itemBadges, itemFacts, itemTitle } from "./describe-item.ts";
import type { LineageNode } from "./forest.ts";
import type { TreeProperties } from "./tree-canvas.tsx";

/** The same as a nested list, as an alternative to the drawing. */
export function TreeList(properties: TreeProperties): JSX.Element {
  return (
    <div class="lineage-list card">
      <Level nodes={properties.forest} properties={properties} />
    </div>
  );
}

function Level({
  nodes,
  properties,
}: {
  readonly nodes: readonly LineageNode[];
  readonly properties: TreeProperties;
}): JSX.Element {
  return (
    <ul>
      {nodes.map((node) => (
        <Entry key={node.item.key} node={node} properties={properties} />
      ))}
    </ul>
  );
}

function Entry({ node, properties }: { readonly node: LineageNode; readonly properties: TreeProperties }): JSX.Element {
  const { item, children } = node;
  const { key, kind } = item;
  const open = properties.isOpen(node);
  const selected = key === properties.selectedKey;
  const title = itemTitle(item);
  return (
    <li>
      <div class={selected ? "lineage-entry lineage-entry-selected" : "lineage-entry"}>
        {children.length === 0 ? (
          <span class="lineage-leaf" aria-hidden="true" />
        ) : (
          <button
            type="button"
            class="lineage-fold"
            aria-expanded={open}
            aria-label={`Descendants of ${title}`}
            onClick={() => properties.onToggle(key, !open)}
          >
            {open ? "▾" : "▸"}
          </button>
        )}
        <span>
          <Button kind="quiet" pressed={selected} onClick={() => properties.onShow(key)}>
            <span class={`chip${isLive(item) ? " chip-running" : ""}`}>{kind}</span>{" "}
            <span class={properties.isFound(node) ? "lineage-name lineage-name-found" : "lineage-name"}>{title}</span>
          </Button>
          <Badges badges={itemBadges(item)} />
          <span class="hint">{itemFacts(item, properties.nowMs)}</span>
        </span>
      </div>
      {open && children.length > 0 ? <Level nodes={children} properties={properties} /> : null}
    </li>
  );
}
