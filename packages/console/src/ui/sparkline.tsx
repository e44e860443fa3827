import type { JSX } from "preact";

const WIDTH = 64;
const HEIGHT = 18;

/** A line without axes, beside the current number. */
export function Sparkline({ points }: { readonly points: readonly number[] }): JSX.Element {
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <polyline points={path(points)} fill="none" stroke="currentColor" stroke-width="1.5" />
    </svg>
  );
}

/** From zero, so that a flat line means no change. */
function path(points: readonly number[]): string {
  const top = Math.max(1, ...points);
  const step = WIDTH / Math.max(1, points.length - 1);
  const at = (value: number): string => (HEIGHT - 1 - (value / top) * (HEIGHT - 2)).toFixed(1);
  if (points.length === 1) return `0,${at(points[0] ?? 0)} ${WIDTH},${at(points[0] ?? 0)}`;
  return points.map((value, index) => `${(index * step).toFixed(1)},${at(value)}`).join(" ");
}
