import { stateWord } from "@sandboxer/protocol/state-word";
import type { JSX } from "preact";
import { formatMilliseconds } from "../../../format/duration.ts";
import type { Band } from "./bands.ts";
import { place, type Range } from "./scale.ts";

export const BAND_HEIGHT = 26;

/** One state in the chart, with as much of its name as fits. */
export function BandBox({
  band,
  range,
  width,
  top,
}: {
  readonly band: Band;
  readonly range: Range;
  readonly width: number;
  readonly top: number;
}): JSX.Element | null {
  const left = Math.max(0, place(band.startMs, range, width));
  const right = Math.min(width, place(band.endMs, range, width));
  if (right <= 0 || left >= width) return null;
  const length = Math.max(2, right - left);
  const state = stateWord(band.state);
  const name = state.startsWith("at ") ? "elsewhere" : state;
  const text = `${state}, ${formatMilliseconds(band.endMs - band.startMs)}`;
  return (
    <g class={`timeline-band timeline-band-${name}`}>
      <title>{`${text}${band.now ? " so far" : ""}`}</title>
      <rect x={left} y={top} width={length} height={BAND_HEIGHT} />
      <text x={left + 6} y={top + 17}>
        {[text, state, name].find((words) => words.length * 7.5 + 12 <= length) ?? ""}
      </text>
    </g>
  );
}
