import type { Curve, Series } from "../result.ts";
import { formatPlace } from "./format.ts";
import { escapeXml, logarithmic, PLOT_STYLE } from "./plot-style.ts";

const WIDTH = 960;
const HEIGHT = 420;
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 310, 40, 48] as const;
const COLOURS = ["#0969da", "#bf5700", "#1a7f37", "#8250df", "#cf222e", "#9a6700", "#0f8b8d", "#6e7781"];
const LABEL_HEIGHT = 15;

interface Axes {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

/** Lines through medians, with the whole range at each point; both axes are logarithmic. */
export function renderCurvePlot(curve: Curve): string {
  const points = curve.series.flatMap((series) => series.points);
  const horizontal = logarithmic(
    points.map(({ x }) => x),
    LEFT,
    WIDTH - RIGHT,
  );
  const vertical = logarithmic(
    points.flatMap(({ summary }) => [summary.minimum, summary.maximum]),
    HEIGHT - BOTTOM,
    TOP,
  );
  const axes = { x: horizontal.place, y: vertical.place };
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escapeXml(curve.title)}">`,
    `<style>${PLOT_STYLE}</style>`,
    `<text class="strong" x="8" y="18">${escapeXml(curve.title)} (${curve.y})</text>`,
    ...vertical.ticks.map((tick) => {
      const y = vertical.place(tick);
      return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/><text x="${LEFT - 6}" y="${y + 4}" text-anchor="end">${formatPlace(tick)}</text>`;
    }),
    ...horizontal.ticks.map((tick) => {
      const x = horizontal.place(tick);
      return `<line class="grid" x1="${x}" x2="${x}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/><text x="${x}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${formatPlace(tick)}</text>`;
    }),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 12}" text-anchor="middle">${escapeXml(curve.x)}</text>`,
    ...curve.series.map((series, index) => renderSeries(series, axes, colourOf(index))),
    ...labels(curve.series, axes),
    "</svg>",
    "",
  ].join("\n");
}

function renderSeries({ points }: Series, { x, y }: Axes, colour: string): string {
  const line = points.map((point) => `${x(point.x)},${y(point.summary.median)}`).join(" ");
  const marks = points.map((point) => {
    const [at, median] = [x(point.x), y(point.summary.median)];
    const range = `<line x1="${at}" x2="${at}" y1="${y(point.summary.minimum)}" y2="${y(point.summary.maximum)}" stroke="${colour}" stroke-opacity=".45" stroke-width="5"/>`;
    return `${range}<circle cx="${at}" cy="${median}" r="3.5" fill="${colour}"/>`;
  });
  return `<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="2"/>${marks.join("")}`;
}

/** At the end of each line, moved apart where they would lie on each other. */
function labels(series: readonly Series[], { y }: Axes): string[] {
  const wanted = series
    .map(({ name, points }, index) => ({ name, index, top: y(points.at(-1)?.summary.median ?? 1) }))
    .toSorted((left, right) => left.top - right.top);
  let lowest = TOP - LABEL_HEIGHT;
  return wanted.map(({ name, index, top }) => {
    lowest = Math.max(top, lowest + LABEL_HEIGHT);
    return `<circle cx="${WIDTH - RIGHT + 14}" cy="${lowest}" r="4" fill="${colourOf(index)}"/><text x="${WIDTH - RIGHT + 22}" y="${lowest + 4}">${escapeXml(name)}</text>`;
  });
}

function colourOf(index: number): string {
  return COLOURS[index % COLOURS.length] ?? "#6e7781";
}
