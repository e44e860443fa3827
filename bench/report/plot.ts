import { meetsAim, ratioOf, type Comparison } from "../result.ts";
import { formatRatio } from "./format.ts";
import type { Results } from "./results.ts";

const ROW_HEIGHT = 24;
const TOP = 44;
const LABELS = 270;
const WIDTH = 760;
const PLOT_WIDTH = WIDTH - LABELS - 96;
/** Ratios from 1/300 to 3, on a logarithmic scale. */
const SCALE = { from: Math.log10(1 / 300), to: Math.log10(3) };
const TICKS: readonly [number, string][] = [
  [1 / 100, "1/100"],
  [1 / 30, "1/30"],
  [1 / 10, "1/10"],
  [1 / 2, "1/2"],
  [1, "1"],
  [2, "2"],
];

/** Colours are chosen to be read on white and on black; text takes the colour of the page where the page can say it. */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #57606a; }
  .strong { font-weight: 600; }
  .grid { stroke: #8c959f; stroke-opacity: .3; }
  .one { stroke: #8c959f; }
  .met { fill: #2da44e; } .missed { fill: #d1642b; } .plain { fill: #6e7781; }
  .aim { stroke: #0969da; stroke-width: 2; }
  @media (prefers-color-scheme: dark) { text { fill: #9198a1; } .aim { stroke: #4493f8; } }`;

/** Bars of sandboxer / raw runsc from 1, each with a line at its aim. */
export function renderPlot({ comparisons, engine }: Results): string {
  const height = TOP + comparisons.length * ROW_HEIGHT + 28;
  const bottom = TOP + comparisons.length * ROW_HEIGHT;
  const ticks = TICKS.map(([ratio, label]) => {
    const x = position(ratio);
    const kind = ratio === 1 ? "one" : "grid";
    return `<line class="${kind}" x1="${x}" x2="${x}" y1="${TOP - 4}" y2="${bottom}"/><text x="${x}" y="${bottom + 16}" text-anchor="middle">${label}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="sandboxer beside raw runsc">`,
    `<style>${STYLE}</style>`,
    `<text class="strong" x="8" y="18">sandboxer ÷ raw runsc (${escape(engine.version)}, ${engine.platform})</text>`,
    `<text x="8" y="34">green: aim met, orange: not met, blue line: the aim</text>`,
    ...ticks,
    ...comparisons.map((comparison, index) => row(comparison, TOP + index * ROW_HEIGHT)),
    "</svg>",
    "",
  ].join("\n");
}

function row(comparison: Comparison, top: number): string {
  const ratio = ratioOf(comparison);
  const [one, end] = [position(1), position(ratio)];
  const met = meetsAim(comparison);
  const kind = met === undefined ? "plain" : met ? "met" : "missed";
  const middle = top + ROW_HEIGHT / 2 + 4;
  const aimX = comparison.aim === undefined ? undefined : position(comparison.aim.ratio);
  const line =
    aimX === undefined
      ? ""
      : `<line class="aim" x1="${aimX}" x2="${aimX}" y1="${top + 2}" y2="${top + ROW_HEIGHT - 2}"/>`;
  return [
    `<text x="${LABELS - 10}" y="${middle}" text-anchor="end">${escape(comparison.title.replaceAll("`", ""))}</text>`,
    `<rect class="${kind}" x="${Math.min(one, end)}" y="${top + 5}" width="${Math.max(1.5, Math.abs(end - one))}" height="${ROW_HEIGHT - 10}" rx="2"/>`,
    line,
    `<text x="${WIDTH - 8}" y="${middle}" text-anchor="end">${formatRatio(comparison)}</text>`,
  ].join("");
}

function position(ratio: number): number {
  const share = (Math.log10(ratio) - SCALE.from) / (SCALE.to - SCALE.from);
  return Math.round(LABELS + Math.min(1, Math.max(0, share)) * PLOT_WIDTH);
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
