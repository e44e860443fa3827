const STEPS = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** Two units at most: `3d 4h`, `12m 5s`, `8s`. */
export function formatSeconds(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  let rest = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [unit, size] of STEPS) {
    const count = Math.floor(rest / size);
    if (parts.length === 1 && count === 0) break;
    if (count > 0) parts.push(`${count}${unit}`);
    rest -= count * size;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? "0s" : parts.join(" ");
}

/** `850 ms`, `1.24 s`, then as {@link formatSeconds}. */
export function formatMilliseconds(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(2)} s`;
  return formatSeconds(milliseconds / 1_000);
}
