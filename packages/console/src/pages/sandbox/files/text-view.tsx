import type { JSX } from "preact";
import { formatBytes } from "../../../format/bytes.ts";
import { TEXT_BYTES, turnsAround } from "./content.ts";

export function TextView({ text, whole }: { readonly text: string; readonly whole: boolean }): JSX.Element {
  return (
    <>
      {whole ? null : (
        <p class="banner banner-warn" role="status">
          Only the first {formatBytes(TEXT_BYTES)} are shown, so the file cannot be edited. Download it to see all of
          it.
        </p>
      )}
      {turnsAround(text) ? (
        <p class="banner banner-warn" role="status">
          The file contains characters that change the text direction: it may read differently from its real order.
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
