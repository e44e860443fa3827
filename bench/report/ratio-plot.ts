import { losesTo, meetsAim, ratioTo, type Contest, type Side } from "../result.ts";
import type { Summary } from "../statistics.ts";
import { formatNumber, formatPlace } from "./format.ts";
import { escapeXml, logarithmic, PLOT_STYLE } from "./plot-style.ts";

const ROW_HEIGHT = 24;
const TOP = 44;
const LABELS = 440;
const WIDTH = 960;
const RIGHT = 76;

interface Row {
  readonly contest: Contest;
  readonly side: Side;
  readonly ratio: Summary;
}

/** Bars of the first side divided by each other one, from 1, with the range, each with a line at its aim. */
export function renderRatioPlot(title: string, contests: readonly Contest[]): string {
  const rows = contests.flatMap((contest) =>
    contest.sides.flatMap((side): Row[] => {
      const ratio = ratioTo(contest, side);
      return ratio === undefined ? [] : [{ contest, side, ratio }];
    }),
  );
  const values = rows.flatMap(({ ratio, contest }) => [ratio.median, contest.aim?.ratio ?? 1]);
  const { place, ticks } = logarithmic([1, ...values], LABELS, WIDTH - RIGHT);
  const bottom = TOP + rows.length * ROW_HEIGHT;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 28}" width="${WIDTH}" height="${bottom + 28}" role="img" aria-label="${escapeXml(title)}">`,
    `<style>${PLOT_STYLE}</style>`,
    `<text class="strong" x="8" y="18">${escapeXml(title)}: ratios, with their range</text>`,
    `<text x="8" y="34">green: aim met, orange: not met, blue line: the aim; without an aim, pale green: not worse, pale orange: worse</text>`,
    ...ticks.map((tick) => {
      const x = place(tick);
      return `<line class="${tick === 1 ? "one" : "grid"}" x1="${x}" x2="${x}" y1="${TOP - 4}" y2="${bottom}"/><text x="${x}" y="${bottom + 16}" text-anchor="middle">${formatPlace(tick)}</text>`;
    }),
    ...rows.map((row, index) => renderRow(row, TOP + index * ROW_HEIGHT, place)),
    "</svg>",
    "",
  ].join("\n");
}

function renderRow({ contest, side, ratio }: Row, top: number, place: (value: number) => number): string {
  const [one, end] = [place(1), place(ratio.median)];
  const isJudged = contest.sides[1] === side;
  const met = isJudged ? meetsAim(contest) : undefined;
  const kind = met === undefined ? (losesTo(contest, side) ? "worse" : "better") : met ? "met" : "missed";
  const middle = top + ROW_HEIGHT / 2;
  const aimX = !isJudged || contest.aim === undefined ? undefined : place(contest.aim.ratio);
  return [
    `<text x="${LABELS - 10}" y="${middle + 4}" text-anchor="end">${escapeXml(`${contest.title} ÷ ${side.name}`)}</text>`,
    `<rect class="${kind}" x="${Math.min(one, end)}" y="${top + 5}" width="${Math.max(1.5, Math.abs(end - one))}" height="${ROW_HEIGHT - 10}" rx="2"/>`,
    `<line class="spread" x1="${place(ratio.minimum)}" x2="${place(ratio.maximum)}" y1="${middle}" y2="${middle}"/>`,
    aimX === undefined
      ? ""
      : `<line class="aim" x1="${aimX}" x2="${aimX}" y1="${top + 2}" y2="${top + ROW_HEIGHT - 2}"/>`,
    `<text x="${WIDTH - 8}" y="${middle + 4}" text-anchor="end">${formatNumber(ratio.median)}×</text>`,
  ].join("");
}
