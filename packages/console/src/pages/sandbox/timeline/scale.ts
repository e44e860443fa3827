/** The visible time range. */
export interface Range {
  readonly startMs: number;
  readonly endMs: number;
}

const SHORTEST_MS = 20;
const STEPS_MS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  1e3,
  2e3,
  5e3,
  10e3,
  15e3,
  30e3,
  60e3,
  2 * 60e3,
  5 * 60e3,
  10 * 60e3,
  15 * 60e3,
  30 * 60e3,
  3_600e3,
  2 * 3_600e3,
  6 * 3_600e3,
  12 * 3_600e3,
  86_400e3,
  2 * 86_400e3,
  7 * 86_400e3,
  28 * 86_400e3,
];

export function place(timeMs: number, { startMs, endMs }: Range, width: number): number {
  return ((timeMs - startMs) / Math.max(1, endMs - startMs)) * width;
}

/** Zooms so that a position of the width, 0 to 1, stays where it is; within the available range. */
export function zoom(range: Range, factor: number, at: number, whole: Range): Range {
  const length = range.endMs - range.startMs;
  const longest = Math.max(SHORTEST_MS, (whole.endMs - whole.startMs) * 1.1);
  const next = Math.min(longest, Math.max(SHORTEST_MS, length / factor));
  const startMs = range.startMs + (length - next) * at;
  return within({ startMs, endMs: startMs + next }, whole);
}

/** Moves by a share of the width. */
export function pan(range: Range, part: number, whole: Range): Range {
  const byMs = (range.endMs - range.startMs) * part;
  return within({ startMs: range.startMs + byMs, endMs: range.endMs + byMs }, whole);
}

function within(range: Range, whole: Range): Range {
  const length = range.endMs - range.startMs;
  const slack = length * 0.05;
  const latest = Math.max(whole.endMs + slack, whole.startMs - slack + length);
  const startMs = Math.min(Math.max(range.startMs, whole.startMs - slack), latest - length);
  return { startMs, endMs: startMs + length };
}

/** Round times, no more than fit. */
export function ticks({ startMs, endMs }: Range, most: number): readonly number[] {
  const step = STEPS_MS.find((size) => (endMs - startMs) / size <= most) ?? 365 * 86_400e3;
  const offset = step >= 3_600e3 ? new Date(startMs).getTimezoneOffset() * 60e3 : 0;
  const first = Math.ceil((startMs - offset) / step) * step + offset;
  const found: number[] = [];
  for (let at = first; at <= endMs; at += step) found.push(at);
  return found;
}

/** As precise as the range needs. */
export function tickText(timeMs: number, { startMs, endMs }: Range): string {
  const length = endMs - startMs;
  const date = new Date(timeMs);
  if (length > 3 * 86_400e3) return date.toLocaleDateString(undefined, { month: "short", day: "numeric" });
  const clock = date.toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    ...(length < 10 * 60e3 ? { second: "2-digit" } : {}),
  });
  if (length >= 5e3) return clock;
  return `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
