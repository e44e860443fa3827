import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { formatMilliseconds } from "../../../format/duration.ts";
import { useSize } from "../../../ui/use-size.ts";
import type { Band } from "./bands.ts";
import { LANES, laneTitle } from "./lanes.ts";
import type { Mark } from "./marks.ts";
import { rowsOf, type Drawn } from "./rows.ts";
import { pan, place, tickText, ticks, zoom, type Range } from "./scale.ts";
import { useGestures } from "./use-gestures.ts";

interface ChartProperties {
  readonly bands: readonly Band[];
  readonly marks: readonly Mark[];
  readonly range: Range;
  readonly whole: Range;
  readonly nowMs: number;
  readonly selectedId: string | undefined;
  readonly onRange: (change: (range: Range) => Range) => void;
  readonly onSelect: (mark: Mark) => void;
}

const BAND_HEIGHT = 26;
const ROW_HEIGHT = 18;
const LABEL_HEIGHT = 18;
const AXIS_HEIGHT = 22;

/** States, executions and everything else that happened, as lanes over one axis of time. */
export function Chart(properties: ChartProperties): JSX.Element {
  const { bands, marks, range, whole, nowMs, onRange } = properties;
  const svg = useRef<SVGSVGElement>(null);
  const { width } = useSize(svg);
  useGestures(svg, whole, onRange);
  const lanes = useMemo(() => {
    let top = AXIS_HEIGHT + LABEL_HEIGHT + BAND_HEIGHT + 8;
    const used = new Set(marks.map(({ kind }) => kind));
    return LANES.filter((lane) => lane === "execution" || used.has(lane)).map((lane) => {
      const drawn = rowsOf(
        marks.filter(({ kind }) => kind === lane),
        range,
        width,
        nowMs,
      );
      const rows = Math.max(1, ...drawn.map(({ row }) => row + 1));
      const placed = { lane, drawn, top };
      top += LABEL_HEIGHT + rows * ROW_HEIGHT + 6;
      return { ...placed, bottom: top };
    });
  }, [marks, range.startMs, range.endMs, width, nowMs]);
  const height = lanes.at(-1)?.bottom ?? 0;
  const all = lanes.flatMap(({ drawn }) => drawn);
  const onKeyDown = (event: KeyboardEvent): void => {
    const change = changeOf(event, whole);
    if (change !== undefined) onRange(change);
    else if (
      !moveFocus(
        event,
        lanes.map(({ drawn }) => drawn),
      )
    )
      return;
    event.preventDefault();
  };
  return (
    <svg
      ref={svg}
      class="timeline-chart"
      height={height}
      role="group"
      aria-label="What happened, over time. Arrow keys go from mark to mark; plus and minus zoom."
      onKeyDown={onKeyDown}
    >
      <Axis range={range} width={width} height={height} />
      <text class="timeline-lane" x={4} y={AXIS_HEIGHT + 13}>
        State
      </text>
      {bands.map((band) => (
        <BandBox key={`${band.state}${band.startMs}`} band={band} range={range} width={width} />
      ))}
      {lanes.map(({ lane, drawn, top }) => (
        <g key={lane}>
          <line class="timeline-rule" x1={0} x2={width} y1={top - 3} y2={top - 3} />
          <text class="timeline-lane" x={4} y={top + 13}>
            {laneTitle(lane)}
          </text>
          {drawn.map((one) => (
            <MarkBox
              key={one.marks[0].id}
              drawn={one}
              top={top + LABEL_HEIGHT + one.row * ROW_HEIGHT}
              selected={one.marks.some(({ id }) => id === properties.selectedId)}
              first={one === all[0]}
              onPress={() => press(one, properties)}
            />
          ))}
        </g>
      ))}
      <NowLine x={place(nowMs, range, width)} width={width} height={height} />
    </svg>
  );
}

/** Several in one place: nearer; one: its details. */
function press({ marks }: Drawn, { onRange, onSelect, whole, nowMs }: ChartProperties): void {
  if (marks.length === 1) return onSelect(marks[0]);
  const startMs = Math.min(...marks.map((mark) => mark.startMs));
  const endMs = Math.max(...marks.map((mark) => mark.endMs ?? nowMs));
  const margin = Math.max(10, (endMs - startMs) * 0.05);
  onRange((before) => {
    const next = { startMs: startMs - margin, endMs: endMs + margin };
    // Those that cannot be told apart by time stay together: the list has them one by one.
    return next.endMs - next.startMs < before.endMs - before.startMs ? next : zoom(before, 2, 0.5, whole);
  });
}

function BandBox({
  band,
  range,
  width,
}: {
  readonly band: Band;
  readonly range: Range;
  readonly width: number;
}): JSX.Element | null {
  const left = Math.max(0, place(band.startMs, range, width));
  const right = Math.min(width, place(band.endMs, range, width));
  if (right <= 0 || left >= width) return null;
  const length = Math.max(2, right - left);
  const top = AXIS_HEIGHT + LABEL_HEIGHT;
  const name = band.state.startsWith("at ") ? "elsewhere" : band.state;
  const text = `${band.state}, ${formatMilliseconds(band.endMs - band.startMs)}`;
  return (
    <g class={`timeline-band timeline-band-${name}`}>
      <title>{`${text}${band.now ? " so far" : ""}`}</title>
      <rect x={left} y={top} width={length} height={BAND_HEIGHT} />
      {length > 60 ? (
        <text x={left + 6} y={top + 17}>
          {length > text.length * 7 ? text : length > band.state.length * 7.5 ? band.state : ""}
        </text>
      ) : null}
    </g>
  );
}

function MarkBox(properties: {
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
      tabIndex={properties.first || selected ? 0 : -1}
      aria-label={`${laneTitle(mark.kind)}: ${label}`}
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
      <title>{label}</title>
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
  );
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, Math.max(0, Math.floor(letters) - 1)).toWellFormed()}…`;
}

function Axis({
  range,
  width,
  height,
}: {
  readonly range: Range;
  readonly width: number;
  readonly height: number;
}): JSX.Element {
  return (
    <g aria-hidden="true">
      {ticks(range, Math.max(2, width / 110)).map((timeMs) => (
        <g key={timeMs} transform={`translate(${place(timeMs, range, width)} 0)`}>
          <line class="timeline-tick" y1={AXIS_HEIGHT - 4} y2={height} />
          <text class="timeline-time" x={3} y={14}>
            {tickText(timeMs, range)}
          </text>
        </g>
      ))}
    </g>
  );
}

function NowLine({
  x,
  width,
  height,
}: {
  readonly x: number;
  readonly width: number;
  readonly height: number;
}): JSX.Element | null {
  if (x < 0 || x > width) return null;
  return <line class="timeline-now" x1={x} x2={x} y1={0} y2={height} aria-hidden="true" />;
}

function changeOf(event: KeyboardEvent, whole: Range): ((range: Range) => Range) | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (event.key === "+" || event.key === "=") return (range) => zoom(range, 1.5, 0.5, whole);
  if (event.key === "-") return (range) => zoom(range, 1 / 1.5, 0.5, whole);
  if (event.shiftKey && event.key === "ArrowLeft") return (range) => pan(range, -0.25, whole);
  if (event.shiftKey && event.key === "ArrowRight") return (range) => pan(range, 0.25, whole);
  return undefined;
}

/** Left and right within a lane, up and down to the nearest mark of another. */
function moveFocus(event: KeyboardEvent, lanes: readonly (readonly Drawn[])[]): boolean {
  const at = (event.target as Element).getAttribute("data-mark");
  const laneIndex = lanes.findIndex((drawn) => drawn.some(({ marks }) => marks[0].id === at));
  const lane = lanes[laneIndex] ?? [];
  const index = lane.findIndex(({ marks }) => marks[0].id === at);
  const current = lane[index];
  if (current === undefined) return false;
  const nearest = (others: readonly Drawn[] = []): Drawn | undefined =>
    others.toSorted((a, b) => Math.abs(a.x - current.x) - Math.abs(b.x - current.x))[0];
  const target = {
    ArrowLeft: () => lane[index - 1],
    ArrowRight: () => lane[index + 1],
    ArrowUp: () => nearest(lanes.slice(0, laneIndex).findLast((drawn) => drawn.length > 0)),
    ArrowDown: () => nearest(lanes.slice(laneIndex + 1).find((drawn) => drawn.length > 0)),
    Home: () => lane[0],
    End: () => lane.at(-1),
  }[event.key];
  if (target === undefined) return false;
  const id = target()?.marks[0].id;
  const svg = (event.target as Element).closest("svg");
  if (id !== undefined) svg?.querySelector<SVGGElement>(`[data-mark="${CSS.escape(id)}"]`)?.focus();
  return true;
}
