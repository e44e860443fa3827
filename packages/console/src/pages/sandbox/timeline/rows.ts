import type { Mark } from "./marks.ts";
import { place, type Range } from "./scale.ts";

/** One place in the chart: a mark, or several that are too close. */
export interface Drawn {
  readonly marks: readonly [Mark, ...Mark[]];
  readonly row: number;
  readonly x: number;
  readonly width: number;
}

const MOST_ROWS = 5;
const SMALLEST = 7;
const GAP = 2;

interface Placed extends Drawn {
  readonly marks: [Mark, ...Mark[]];
  width: number;
}

/** Places marks of one lane, oldest first, in rows, so that overlapping ones are below one another. */
export function rowsOf(marks: readonly Mark[], range: Range, width: number, nowMs: number): readonly Drawn[] {
  const drawn: Placed[] = [];
  const lastOfRow: Placed[] = [];
  for (const mark of marks) {
    const endMs = mark.endMs ?? nowMs;
    if (endMs < range.startMs || mark.startMs > range.endMs) continue;
    const x = Math.max(-SMALLEST, place(mark.startMs, range, width));
    const right = Math.max(x + SMALLEST, Math.min(width + SMALLEST, place(endMs, range, width)));
    const free = lastOfRow.findIndex((last) => last.x + last.width + GAP <= x);
    if (free === -1 && lastOfRow.length === MOST_ROWS) {
      // No row is left: it joins the mark in its way.
      const other = lastOfRow.reduce((first, last) => (last.x + last.width < first.x + first.width ? last : first));
      other.marks.push(mark);
      other.width = Math.max(other.width, right - other.x);
      continue;
    }
    const row = free === -1 ? lastOfRow.length : free;
    const placed: Placed = { marks: [mark], row, x, width: right - x };
    lastOfRow[row] = placed;
    drawn.push(placed);
  }
  return drawn;
}
