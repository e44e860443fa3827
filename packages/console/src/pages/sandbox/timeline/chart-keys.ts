import type { Drawn } from "./rows.ts";
import { pan, zoom, type Range } from "./scale.ts";

/** How a key changes the visible range; `at` is the fixed position of the width, 0 to 1. */
export function changeOf(event: KeyboardEvent, at: number, whole: Range): ((range: Range) => Range) | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (event.key === "+" || event.key === "=") return (range) => zoom(range, 1.5, at, whole);
  if (event.key === "-") return (range) => zoom(range, 1 / 1.5, at, whole);
  if (event.shiftKey && event.key === "ArrowLeft") return (range) => pan(range, -0.25, whole);
  if (event.shiftKey && event.key === "ArrowRight") return (range) => pan(range, 0.25, whole);
  return undefined;
}

/** Left and right within a lane, up and down to the nearest mark of another. */
export function moveFocus(event: KeyboardEvent, lanes: readonly (readonly Drawn[])[]): boolean {
  const at = (event.target as Element).getAttribute("data-mark");
  const laneIndex = lanes.findIndex((drawn) => drawn.some(({ marks }) => marks[0].id === at));
  const lane = lanes[laneIndex] ?? [];
  const index = lane.findIndex(({ marks }) => marks[0].id === at);
  // The previous focus may be out of sight: start again.
  const current = lane[index] ?? lanes.find((drawn) => drawn.length > 0)?.[0];
  if (current === undefined) return false;
  const nearest = (others: readonly Drawn[] = []): Drawn | undefined =>
    others.toSorted((a, b) => Math.abs(a.x - current.x) - Math.abs(b.x - current.x))[0];
  const target = {
    ArrowLeft: () => lane[index - 1],
    ArrowRight: () => lane[index + 1],
    ArrowUp: () => nearest(lanes.slice(0, laneIndex).findLast((drawn) => drawn.length > 0)),
    ArrowDown: () => nearest(lanes.slice(laneIndex + 1).find((drawn) => drawn.length > 0)),
    Home: () => lane[0],
    End: () => lane.at(-1),
  }[event.key];
  if (target === undefined) return false;
  const id = (index === -1 ? current : target())?.marks[0].id;
  const svg = (event.target as Element).closest("svg");
  if (id !== undefined) svg?.querySelector<SVGGElement>(`[data-mark="${CSS.escape(id)}"]`)?.focus();
  return true;
}
