const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Three figures at most: `512 B`, `1.5 MiB`, `48 GiB`. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1_000 && unit < UNITS.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  const figures = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${Number(value.toFixed(figures))} ${UNITS[unit]}`;
}
