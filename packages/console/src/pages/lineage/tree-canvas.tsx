import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { useSize } from "../../ui/use-size.ts";
import type { LineageNode } from "./forest.ts";
import { CARD_HEIGHT, CARD_WIDTH, layOut, type Layout, type PlacedNode } from "./layout.ts";
import { lookOf, TreeCard } from "./tree-card.tsx";
import { moveOf } from "./tree-keys.ts";
import { useView } from "./use-view.ts";
import { fit, reveal, zoomAt } from "./view.ts";

export interface TreeProperties {
  readonly forest: readonly LineageNode[];
  readonly isOpen: (node: LineageNode) => boolean;
  readonly isFound: (node: LineageNode) => boolean;
  readonly selectedKey: string | undefined;
  readonly comparedKey: string | undefined;
  /** The time for the displayed ages. */
  readonly nowMs: number;
  readonly onSelect: (key: string) => void;
  readonly onToggle: (key: string, open: boolean) => void;
  /** Enter: moves to its actions. */
  readonly onShow: (key: string) => void;
}

/** The forest as a drawing that can be moved and zoomed. */
export function TreeCanvas(properties: TreeProperties): JSX.Element {
  const { forest, isOpen, selectedKey } = properties;
  const svg = useRef<SVGSVGElement>(null);
  const size = useSize(svg);
  const [view, setView] = useView(svg);
  const layout = useMemo(() => layOut(forest, isOpen), [forest, isOpen]);
  const selected = layout.nodes.find(({ node }) => node.item.key === selectedKey);
  const sized = size.width > 0;
  useEffect(() => {
    if (sized) setView(fit(layout, size));
  }, [sized]);
  useEffect(() => {
    if (sized && selected !== undefined) setView((before) => reveal(before, selected, size));
  }, [sized, selected?.x, selected?.y, selectedKey]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const factor = { "+": 1.25, "=": 1.25, "-": 0.8 }[event.key];
    const move = moveOf(event.key, layout.nodes, selectedKey, isOpen);
    if (factor !== undefined) setView((before) => zoomAt(before, factor, size.width / 2, size.height / 2));
    else if (event.key === "0") setView(fit(layout, size));
    else if (move?.kind === "go") properties.onSelect(move.key);
    else if (move?.kind === "toggle") properties.onToggle(move.key, move.open);
    else if (move?.kind === "show") properties.onShow(move.key);
    else return;
    event.preventDefault();
  };
  const drawing = useMemo(
    () => <Drawing layout={layout} properties={properties} />,
    [layout, selectedKey, properties.comparedKey, properties.isFound, properties.nowMs],
  );
  return (
    <div class="lineage-canvas">
      <svg
        ref={svg}
        role="tree"
        aria-label="Sandboxes and snapshots by origin"
        aria-activedescendant={selected === undefined ? undefined : cardId(selected)}
        tabindex={0}
        onKeyDown={onKeyDown}
      >
        <g transform={`translate(${view.x} ${view.y}) scale(${view.scale})`}>{drawing}</g>
      </svg>
      <div class="lineage-zoom row">
        <Button label="Zoom out" onClick={() => setView((now) => zoomAt(now, 0.8, size.width / 2, size.height / 2))}>
          −
        </Button>
        <Button label="Zoom in" onClick={() => setView((now) => zoomAt(now, 1.25, size.width / 2, size.height / 2))}>
          +
        </Button>
        <Button label="Fit the drawing" onClick={() => setView(fit(layout, size))}>
          Fit
        </Button>
      </div>
    </div>
  );
}

function Drawing({
  layout,
  properties,
}: {
  readonly layout: Layout;
  readonly properties: TreeProperties;
}): JSX.Element {
  const { isOpen, isFound, selectedKey, comparedKey, nowMs } = properties;
  // An unchanged card is the same object: with a thousand of them only changes are compared.
  const before = useRef<ReadonlyMap<string, CachedCard>>(new Map());
  const cards = new Map<string, CachedCard>();
  for (const placed of layout.nodes) {
    const { node } = placed;
    const { key } = node.item;
    const open = isOpen(node);
    const look = {
      ...lookOf(node, nowMs),
      id: cardId(placed),
      x: placed.x,
      y: placed.y,
      level: placed.level,
      open,
      selected: key === selectedKey,
      compared: key === comparedKey,
      found: isFound(node),
    };
    const looks = JSON.stringify(look);
    const known = before.current.get(key);
    const onSelect = (): void => properties.onSelect(key);
    const onToggle = (): void => properties.onToggle(key, !open);
    const card = <TreeCard key={key} look={look} onSelect={onSelect} onToggle={onToggle} />;
    cards.set(key, known?.looks === looks ? known : { looks, card });
  }
  before.current = cards;
  return (
    <>
      <path class="lineage-edge" aria-hidden="true" d={layout.edges.map(({ from, to }) => curve(from, to)).join("")} />
      {Array.from(cards.values(), ({ card }) => card)}
    </>
  );
}

interface CachedCard {
  readonly looks: string;
  readonly card: JSX.Element;
}

function cardId({ node }: PlacedNode): string {
  return `lineage-${node.item.key}`;
}

function curve(from: PlacedNode, to: PlacedNode): string {
  const [startX, startY] = [from.x + CARD_WIDTH, from.y + CARD_HEIGHT / 2];
  const [endX, endY] = [to.x, to.y + CARD_HEIGHT / 2];
  const middle = (startX + endX) / 2;
  return `M${startX} ${startY} C${middle} ${startY} ${middle} ${endY} ${endX} ${endY}`;
}
