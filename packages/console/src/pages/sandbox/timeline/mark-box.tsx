import type { JSX } from "preact";
import { laneTitle } from "./lanes.ts";
import type { Drawn } from "./rows.ts";

export const ROW_HEIGHT = 18;

/** One mark of the drawing, or several that are too close together. */
export function MarkBox(properties: {
  readonly drawn: Drawn;
  readonly top: number;
  readonly selected: boolean;
  readonly first: boolean;
  readonly onPress: () => void;
}): JSX.Element {
  const { drawn, top, selected, onPress } = properties;
  const { marks, x, width } = drawn;
  const [mark] = marks;
  const several = marks.length > 1;
  const label = several ? `${marks.length} close together, from ${mark.title}` : `${mark.title} ${mark.outcome}`.trim();
  const names = ["timeline-mark", `timeline-mark-${mark.kind}`];
  if (marks.some(({ failed }) => failed)) names.push("timeline-mark-failed");
  if (marks.some(({ endMs }) => endMs === undefined)) names.push("timeline-mark-running");
  if (selected) names.push("timeline-mark-selected");
  return (
    <g
      class={names.join(" ")}
      role="button"
      tabindex={properties.first || selected ? 0 : -1}
      aria-pressed={selected}
      data-mark={mark.id}
      onClick={onPress}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        onPress();
      }}
    >
      <title>{`${laneTitle(mark.kind)}: ${label}`}</title>
      <g aria-hidden="true">
        <rect x={x} y={top + 1} width={width} height={ROW_HEIGHT - 4} rx={3} />
        {width > 54 ? (
          <text x={Math.max(0, x) + 5} y={top + 12}>
            {cut(several ? `${marks.length} ×` : label, (width + Math.min(0, x)) / 6.6 - 1)}
          </text>
        ) : several && width > 14 ? (
          <text x={x + 3} y={top + 12}>
            {marks.length > 99 ? "…" : marks.length}
          </text>
        ) : null}
      </g>
    </g>
  );
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, Math.max(0, Math.floor(letters) - 1)).toWellFormed()}…`;
}
