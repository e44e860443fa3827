import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { useSize } from "../../../ui/use-size.ts";
import { BAND_HEIGHT, BandBox } from "./band-box.tsx";
import type { Band } from "./bands.ts";
import { changeOf, moveFocus } from "./chart-keys.ts";
import { LANES, laneTitle } from "./lanes.ts";
import { MarkBox, ROW_HEIGHT } from "./mark-box.tsx";
import type { Mark } from "./marks.ts";
import { rowsOf, type Drawn } from "./rows.ts";
import { place, tickText, ticks, zoom, type Range } from "./scale.ts";
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

const LABEL_HEIGHT = 18;
const AXIS_HEIGHT = 22;

/** States, executions and all other events, as lanes over one time axis. */
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
    const focused = all.find(({ marks: [first] }) => first.id === (event.target as Element).getAttribute("data-mark"));
    const at = focused === undefined ? 0.5 : Math.min(1, Math.max(0, focused.x / Math.max(1, width)));
    const change = changeOf(event, at, whole);
    if (change !== undefined) {
      onRange(change);
      // A mark that leaves the view takes the focus with it; the keys stay here.
      requestAnimationFrame(() => svg.current?.contains(document.activeElement) === true || svg.current?.focus());
    } else if (
      !moveFocus(
        event,
        lanes.map(({ drawn }) => drawn),
      )
    ) {
      return;
    }
    event.preventDefault();
  };
  return (
    <svg
      ref={svg}
      class="timeline-chart"
      height={height}
      role="group"
      tabindex={-1}
      aria-label="Events over time. Arrow keys move between marks; plus and minus zoom."
      onKeyDown={onKeyDown}
    >
      <Axis range={range} width={width} height={height} />
      <text class="timeline-lane" x={4} y={AXIS_HEIGHT + 13}>
        State
      </text>
      {bands.map((band) => (
        <BandBox
          key={`${band.state}${band.startMs}`}
          band={band}
          range={range}
          width={width}
          top={AXIS_HEIGHT + LABEL_HEIGHT}
        />
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

/** Several in one place: zoom in; one: its details. */
function press({ marks }: Drawn, { onRange, onSelect, whole, nowMs }: ChartProperties): void {
  if (marks.length === 1) return onSelect(marks[0]);
  const startMs = Math.min(...marks.map((mark) => mark.startMs));
  const endMs = Math.max(...marks.map((mark) => mark.endMs ?? nowMs));
  const margin = Math.max(10, (endMs - startMs) * 0.05);
  onRange((before) => {
    const next = { startMs: startMs - margin, endMs: endMs + margin };
    // Marks at the same time stay together: the list has them one by one.
    return next.endMs - next.startMs < before.endMs - before.startMs ? next : zoom(before, 2, 0.5, whole);
  });
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
