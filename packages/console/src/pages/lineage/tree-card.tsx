import type { JSX } from "preact";
import { cutText, isLive, itemFacts, itemState, itemTitle } from "./describe-item.ts";
import { CARD_HEIGHT, CARD_WIDTH, type PlacedNode } from "./layout.ts";

interface CardProperties {
  readonly placed: PlacedNode;
  readonly id: string;
  readonly nowMs: number;
  readonly selected: boolean;
  readonly compared: boolean;
  readonly found: boolean;
  readonly open: boolean;
  readonly onSelect: () => void;
  readonly onToggle: () => void;
}

/** One sandbox or snapshot in the drawing. */
export function TreeCard(properties: CardProperties): JSX.Element {
  const { placed, selected, open, nowMs } = properties;
  const { item, children } = placed.node;
  const title = itemTitle(item);
  const facts = itemFacts(item, nowMs);
  const names = ["lineage-card", `lineage-${item.kind}`, `lineage-state-${itemState(item)}`];
  if (isLive(item)) names.push("lineage-live");
  if (selected) names.push("lineage-selected");
  if (properties.compared) names.push("lineage-compared");
  if (properties.found) names.push("lineage-found");
  return (
    <g
      id={properties.id}
      class={names.join(" ")}
      transform={`translate(${placed.x} ${placed.y})`}
      role="treeitem"
      aria-level={placed.level}
      aria-selected={selected}
      aria-expanded={children.length === 0 ? undefined : open}
      onClick={properties.onSelect}
    >
      <title>{`${item.kind} ${title}, ${facts}`}</title>
      <g aria-hidden="true">
        <rect width={CARD_WIDTH} height={CARD_HEIGHT} rx={item.kind === "sandbox" ? 10 : 3} />
        <Sign kind={item.kind} />
        <text x={28} y={19} class="lineage-title">
          {cutText(title, 22)}
        </text>
        <text x={28} y={36} class="lineage-facts">
          {cutText(facts, 30)}
        </text>
        {children.length === 0 ? null : (
          <g
            class="lineage-toggle"
            transform={`translate(${CARD_WIDTH} ${CARD_HEIGHT / 2})`}
            onClick={(event) => {
              event.stopPropagation();
              properties.onToggle();
            }}
          >
            <circle r={11} />
            <text text-anchor="middle" y={4}>
              {open ? "–" : children.length > 99 ? "99+" : children.length}
            </text>
          </g>
        )}
      </g>
    </g>
  );
}

/** A disc for what can run, a diamond for what was kept of it. */
function Sign({ kind }: { readonly kind: "sandbox" | "snapshot" }): JSX.Element {
  return kind === "sandbox" ? (
    <circle class="lineage-sign" cx={15} cy={15} r={5} />
  ) : (
    <path class="lineage-sign" d="M15 9 l6 6 l-6 6 l-6 -6 z" />
  );
}
