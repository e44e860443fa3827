import { useEffect, useState } from "preact/hooks";

const NARROW = "(max-width: 760px)";
/** As sandboxes.css has them: a row, and a card of a narrow page. */
const ROW_HEIGHT = 44;
const CARD_HEIGHT = 116;

export function useRowHeight(): number {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const watched = matchMedia(NARROW);
    const change = (): void => setNarrow(watched.matches);
    watched.addEventListener("change", change);
    return () => watched.removeEventListener("change", change);
  }, []);
  return narrow ? CARD_HEIGHT : ROW_HEIGHT;
}
