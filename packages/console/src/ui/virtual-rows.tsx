import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface VirtualRowsProperties {
  readonly count: number;
  readonly rowHeight: number;
  /** Renders the row at an index, with the height `rowHeight`. */
  readonly row: (index: number) => ComponentChildren;
}

/** Rows beyond the visible ones, so that scrolling does not show gaps. */
const MARGIN = 12;

/** Only visible rows are in the page, however many there are. The page itself scrolls. */
export function VirtualRows({ count, rowHeight, row }: VirtualRowsProperties): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const [[first, last], setRange] = useState<readonly [number, number]>([0, 40]);
  useEffect(() => {
    const look = (): void => {
      const top = element.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-top / rowHeight) - MARGIN);
      const to = from + Math.ceil(innerHeight / rowHeight) + 2 * MARGIN;
      setRange((range) => (range[0] === from && range[1] === to ? range : [from, to]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [rowHeight, count]);
  const shown = Math.max(0, Math.min(count, last) - first);
  const lines = Array.from({ length: shown }, (_, index) => row(first + index));
  return (
    <div ref={element} role="rowgroup" class="virtual-rows" style={{ height: `${count * rowHeight}px` }}>
      <div style={{ transform: `translateY(${Math.min(first, count) * rowHeight}px)` }}>{lines}</div>
    </div>
  );
}
