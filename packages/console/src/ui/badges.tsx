import type { JSX } from "preact";
import type { Badge } from "../format/badges.ts";

/** Words with a background colour; the words alone are enough. */
export function Badges({ badges }: { readonly badges: readonly Badge[] }): JSX.Element | null {
  if (badges.length === 0) return null;
  return (
    <span class="badges">
      {badges.map(({ text, kind, title }) => (
        <span key={text} class={`badge badge-${kind}`} title={title}>
          {text}
        </span>
      ))}
    </span>
  );
}
