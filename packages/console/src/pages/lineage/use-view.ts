import type { RefObject } from "preact";
import { useEffect, useState, type Dispatch, type StateUpdater } from "preact/hooks";
import { zoomAt, type View } from "./view.ts";

/** Moves and zooms a drawing by pointer and wheel. With Ctrl or ⌘ the wheel zooms, otherwise it moves. */
export function useView(element: RefObject<SVGSVGElement | null>): readonly [View, Dispatch<StateUpdater<View>>] {
  const [view, setView] = useState<View>({ x: 0, y: 0, scale: 1 });
  useEffect(() => {
    const svg = element.current;
    if (svg === null) return;
    const end = new AbortController();
    const { signal } = end;
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault();
      const { left, top } = svg.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY / 300);
      setView((before) =>
        event.ctrlKey || event.metaKey
          ? zoomAt(before, factor, event.clientX - left, event.clientY - top)
          : { ...before, ...moved(before, event) },
      );
    };
    const onDown = (event: PointerEvent): void => {
      if (event.button !== 0 || (event.target as Element).closest("[role=treeitem]") !== null) return;
      svg.setPointerCapture(event.pointerId);
      svg.classList.add("lineage-dragged");
    };
    const onMove = (event: PointerEvent): void => {
      if (!svg.hasPointerCapture(event.pointerId)) return;
      setView((before) => ({ ...before, x: before.x + event.movementX, y: before.y + event.movementY }));
    };
    const onUp = (): void => svg.classList.remove("lineage-dragged");
    svg.addEventListener("wheel", onWheel, { signal, passive: false });
    svg.addEventListener("pointerdown", onDown, { signal });
    svg.addEventListener("pointermove", onMove, { signal });
    svg.addEventListener("lostpointercapture", onUp, { signal });
    return () => end.abort();
  }, []);
  return [view, setView];
}

function moved({ x, y }: View, { deltaX, deltaY, shiftKey }: WheelEvent): Pick<View, "x" | "y"> {
  return shiftKey ? { x: x - deltaY - deltaX, y } : { x: x - deltaX, y: y - deltaY };
}
