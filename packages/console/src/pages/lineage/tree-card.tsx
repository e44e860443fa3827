import type { JSX } from "preact";
import type { Badge } from "../../format/badges.ts";
import { cutText, isLive, itemBadges, itemFacts, itemState, itemTitle } from "./describe-item.ts";
import { CardBadges } from "./card-badges.tsx";
import type { LineageNode } from "./forest.ts";
import { CARD_HEIGHT, CARD_WIDTH } from "./layout.ts";

/** Everything visible on a card. */
interface CardLook extends NodeLook {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly level: number;
  readonly open: boolean;
  readonly selected: boolean;
  readonly compared: boolean;
  readonly found: boolean;
}

interface NodeLook {
  readonly kind: "sandbox" | "snapshot";
  readonly state: string;
  readonly live: boolean;
  readonly title: string;
  readonly facts: string;
  readonly children: number;
  readonly badges: readonly Badge[];
}

export function lookOf({ item, children }: LineageNode, nowMs: number): NodeLook {
  return {
    kind: item.kind,
    state: itemState(item),
    live: isLive(item),
    title: itemTitle(item),
    facts: itemFacts(item, nowMs),
    children: children.length,
    badges: itemBadges(item),
  };
}

/** One sandbox or snapshot in the drawing. */
export function TreeCard({
  look,
  onSelect,
  onToggle,
}: {
  readonly look: CardLook;
  readonly onSelect: () => void;
  readonly onToggle: () => void;
}): JSX.Element {
  const { kind, title, facts, children, open, selected } = look;
  const names = ["lineage-card", `lineage-${kind}`, `lineage-state-${look.state}`];
  if (look.live) names.push("lineage-live");
  if (selected) names.push("lineage-selected");
  if (look.compared) names.push("lineage-compared");
  if (look.found) names.push("lineage-found");
  return (
    <g
      id={look.id}
      class={names.join(" ")}
      transform={`translate(${look.x} ${look.y})`}
      role="treeitem"
      aria-level={look.level}
      aria-selected={selected}
      aria-expanded={children === 0 ? undefined : open}
      onClick={onSelect}
    >
      <title>{[`${kind} ${title}`, facts, ...look.badges.map(({ text }) => text)].join(", ")}</title>
      <g aria-hidden="true">
        <rect width={CARD_WIDTH} height={CARD_HEIGHT} rx={kind === "sandbox" ? 10 : 3} />
        <Sign kind={kind} />
        <text x={28} y={19} class="lineage-title">
          {cutText(title, 22)}
        </text>
        <text x={28} y={36} class="lineage-facts">
          {cutText(facts, 30)}
        </text>
        <CardBadges badges={look.badges} />
        {children === 0 ? null : (
          <g
            class="lineage-toggle"
            transform={`translate(${CARD_WIDTH} ${CARD_HEIGHT / 2})`}
            onClick={(event) => {
              event.stopPropagation();
              onToggle();
            }}
          >
            <circle r={11} />
            <text text-anchor="middle" y={4}>
              {open ? "–" : children > 99 ? "99+" : children}
            </text>
          </g>
        )}
      </g>
    </g>
  );
}

/** A disc for a sandbox, a diamond for a snapshot. */
function Sign({ kind }: { readonly kind: "sandbox" | "snapshot" }): JSX.Element {
  return kind === "sandbox" ? (
    <circle class="lineage-sign" cx={15} cy={15} r={5} />
  ) : (
    <path class="lineage-sign" d="M15 9 l6 6 l-6 6 l-6 -6 z" />
  );
}
