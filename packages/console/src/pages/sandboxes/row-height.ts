import { useMedia } from "../../ui/use-media.ts";

/** As in sandboxes.css: a row, and a card of a narrow page. */
const ROW_HEIGHT = 44;
const CARD_HEIGHT = 116;

export function useRowHeight(): number {
  return useMedia("(max-width: 900px)") ? CARD_HEIGHT : ROW_HEIGHT;
}
