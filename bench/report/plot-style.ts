/** Colours are chosen to be readable on white and on black; text uses the colour of the page where possible. */
export const PLOT_STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #57606a; }
  .strong { font-weight: 600; }
  .grid { stroke: #8c959f; stroke-opacity: .3; }
  .one { stroke: #8c959f; }
  .met { fill: #2da44e; } .missed { fill: #d1642b; } .better { fill: #2da44e; fill-opacity: .5; } .worse { fill: #d1642b; fill-opacity: .5; }
  .aim { stroke: #0969da; stroke-width: 2; }
  .spread { stroke: #24292f; stroke-opacity: .55; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1; } .aim { stroke: #4493f8; } .spread { stroke: #f0f6fc; }
  }`;

export function escapeXml(text: string): string {
  return text.replaceAll("`", "").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** An axis from one value to another on a logarithmic scale, as a function from values to places. */
export function logarithmic(
  values: readonly number[],
  from: number,
  to: number,
): { readonly place: (value: number) => number; readonly ticks: readonly number[] } {
  const positive = values.filter((value) => Number.isFinite(value) && value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive, 1e12)) * 3) / 3;
  const high = Math.max(low + 1 / 3, Math.ceil(Math.log10(Math.max(...positive, 1e-12)) * 3) / 3);
  const place = (value: number): number => {
    const share = (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
    return Math.round((from + Math.min(1, share) * (to - from)) * 10) / 10;
  };
  return { place, ticks: ticksBetween(low, high) };
}

/** 1, 10, 100 and so on; with 2 and 5 where there are few of them. */
function ticksBetween(low: number, high: number): number[] {
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const step of steps) ticks.push(step * 10 ** power);
  }
  const slack = 1e-9;
  return ticks.filter((tick) => Math.log10(tick) >= low - slack && Math.log10(tick) <= high + slack);
}
