import type { JSX } from "preact";
import type { Badge } from "../../format/badges.ts";
import { CARD_WIDTH } from "./layout.ts";

const HEIGHT = 15;
const GAP = 3;
const RIGHT = 12;
const SHOWN = 3;

/** On the upper edge of a card, from the right; the most important is at the left. */
export function CardBadges({ badges }: { readonly badges: readonly Badge[] }): JSX.Element {
  const more = badges.length - SHOWN;
  const shown = badges.slice(0, SHOWN).map(({ text, kind }) => ({ text, kind }));
  const all = more > 0 ? [...shown, { text: `+${more}`, kind: "plain" }] : shown;
  const widths = all.map(({ text }) => widthOf(text));
  const start = CARD_WIDTH - RIGHT - widths.reduce((sum, width) => sum + width + GAP, -GAP);
  return (
    <>
      {all.map(({ text, kind }, index) => {
        const width = widths[index] ?? 0;
        const x = widths.slice(0, index).reduce((sum, before) => sum + before + GAP, start);
        return (
          <g key={text} class={`lineage-badge lineage-badge-${kind}`} transform={`translate(${x} ${-HEIGHT / 2})`}>
            <rect width={width} height={HEIGHT} rx={4} />
            <text x={width / 2} y={11} text-anchor="middle">
              {text}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** An SVG does not know the width of its texts: enough for letters of this size. */
function widthOf(text: string): number {
  return text.length * 6 + 10;
}
