import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { pan, zoom, type Range } from "./scale.ts";

/** Zooms with the wheel and Ctrl or ⌘, moves with the sideways wheel and by dragging. The plain wheel scrolls the page. */
export function useGestures(
  element: RefObject<SVGSVGElement | null>,
  whole: Range,
  onRange: (change: (range: Range) => Range) => void,
): void {
  const latest = useRef({ whole, onRange });
  latest.current = { whole, onRange };
  useEffect(() => {
    const svg = element.current;
    if (svg === null) return;
    const end = new AbortController();
    const { signal } = end;
    const onWheel = (event: WheelEvent): void => {
      const { left, width } = svg.getBoundingClientRect();
      const sideways = event.shiftKey ? event.deltaY + event.deltaX : event.deltaX;
      const { whole: all, onRange: change } = latest.current;
      if (event.ctrlKey || event.metaKey) {
        change((range) => zoom(range, Math.exp(-event.deltaY / 300), (event.clientX - left) / width, all));
      } else if (Math.abs(sideways) > 0) change((range) => pan(range, sideways / width, all));
      else return;
      event.preventDefault();
    };
    const onDown = (event: PointerEvent): void => {
      if (event.button === 0 && (event.target as Element).closest("[role=button]") === null) {
        svg.setPointerCapture(event.pointerId);
      }
    };
    const onMove = (event: PointerEvent): void => {
      if (!svg.hasPointerCapture(event.pointerId)) return;
      const { whole: all, onRange: change } = latest.current;
      const part = -event.movementX / Math.max(1, svg.clientWidth);
      change((range) => pan(range, part, all));
    };
    svg.addEventListener("wheel", onWheel, { signal, passive: false });
    svg.addEventListener("pointerdown", onDown, { signal });
    svg.addEventListener("pointermove", onMove, { signal });
    return () => end.abort();
  }, []);
}
