import type { JSX } from "preact";
import { formatBytes } from "../../../format/bytes.ts";
import { TEXT_BYTES, turnsAround } from "./content.ts";

export function TextView({ text, whole }: { readonly text: string; readonly whole: boolean }): JSX.Element {
  return (
    <>
      {whole ? null : (
        <p class="banner banner-warn" role="status">
          Only the first {formatBytes(TEXT_BYTES)} are shown, and it cannot be edited here. Download it to have it
          whole.
        </p>
      )}
      {turnsAround(text) ? (
        <p class="banner banner-warn" role="status">
          It holds characters that turn the direction of writing: what is seen may not be the order of what is there.
        </p>
      ) : null}
      {text === "" ? (
        <p class="hint">The file is empty.</p>
      ) : (
        <pre class="file-text" tabIndex={0} role="region" aria-label="Content">
          {text}
        </pre>
      )}
    </>
  );
}
