import { useEffect, useState } from "preact/hooks";

/** Whether the window matches a media query, live. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const watched = matchMedia(query);
    const change = (): void => setMatches(watched.matches);
    change();
    watched.addEventListener("change", change);
    return () => watched.removeEventListener("change", change);
  }, [query]);
  return matches;
}
