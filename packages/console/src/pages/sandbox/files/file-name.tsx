import type { JSX } from "preact";
import { visibleName } from "./visible-name.ts";

/** A foreign name: as text, with its own text direction. */
export function FileName({ name }: { readonly name: string }): JSX.Element {
  return (
    <bdi>
      {visibleName(name).map(({ text, code }) =>
        code === undefined ? (
          text
        ) : (
          <span class="name-sign" title={code}>
            {text}
          </span>
        ),
      )}
    </bdi>
  );
}
