import type { Layout, PlacedNode } from "./layout.ts";
import { CARD_HEIGHT, CARD_WIDTH } from "./layout.ts";

/** The visible part of the drawing: `x` and `y` are where its origin is on the screen. */
export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

const SMALLEST = 0.15;
const LARGEST = 2;
const MARGIN = 16;

/** Zooms so that a point of the screen stays where it is. */
export function zoomAt(view: View, factor: number, x: number, y: number): View {
  const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
  const change = scale / view.scale;
  return { scale, x: x - (x - view.x) * change, y: y - (y - view.y) * change };
}

/** Everything, if it is still readable; otherwise its beginning. */
export function fit(layout: Layout, size: Size): View {
  const room = { width: size.width - 2 * MARGIN, height: size.height - 2 * MARGIN };
  const whole = Math.min(room.width / Math.max(1, layout.width), room.height / Math.max(1, layout.height));
  const scale = Math.min(1, Math.max(0.55, whole));
  const spare = Math.max(0, room.height - layout.height * scale);
  return { scale, x: MARGIN - layout.left * scale, y: MARGIN - layout.top * scale + Math.min(spare / 2, 40) };
}

/** Moves as little as necessary to show a whole card. */
export function reveal(view: View, { x, y }: PlacedNode, size: Size): View {
  const within = (start: number, length: number, room: number): number => {
    if (start < MARGIN) return MARGIN - start;
    return start + length > room - MARGIN ? Math.max(room - MARGIN - length, MARGIN) - start : 0;
  };
  const moveX = within(view.x + x * view.scale, CARD_WIDTH * view.scale, size.width);
  const moveY = within(view.y + y * view.scale, CARD_HEIGHT * view.scale, size.height);
  return moveX === 0 && moveY === 0 ? view : { ...view, x: view.x + moveX, y: view.y + moveY };
}
