const STEPS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86_400, 3600, "h"],
  [Number.POSITIVE_INFINITY, 86_400, "d"],
] as const;

/** `45 s`, `12 min`, `3 h`, `9 d`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, seconds);
  const [, size, unit] = STEPS.find(([below]) => whole < below) ?? STEPS[3];
  return `${Math.floor(whole / size)} ${unit}`;
}

/** How long ago, or in how long. */
export function formatAge(timestamp: string | null, nowMs = Date.now()): string {
  if (timestamp === null) return "";
  const seconds = (nowMs - Date.parse(timestamp)) / 1000;
  return seconds >= 0 ? `${formatSeconds(seconds)} ago` : `in ${formatSeconds(-seconds)}`;
}

/** `350 ms`, `2.4 s`. */
export function formatMs(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
