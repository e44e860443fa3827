/** How much the line through the points rises from the first to the last, by least squares. */
export function riseOf(points: readonly (readonly [x: number, y: number])[]): number {
  const count = points.length;
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / count;
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  if (count < 2 || spread === 0) return 0;
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
  return slope * ((points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0));
}
