import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoaded } from "../../../live/use-loaded.ts";
import { Button } from "../../../ui/button.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { HEX_PAGE_BYTES, hexLines } from "./content.ts";
import { readPart } from "./file-calls.ts";

interface HexViewProperties {
  readonly sandboxId: string;
  readonly path: string;
  readonly sizeBytes: number;
}

/** The bytes of a file, a page of them at a time. */
export function HexView({ sandboxId, path, sizeBytes }: HexViewProperties): JSX.Element {
  const [offset, setOffset] = useState(0);
  const { value, error } = useLoaded(
    async (signal) => ({
      offset,
      bytes: await readPart(sandboxId, path, { offset, length: HEX_PAGE_BYTES }, signal),
    }),
    [sandboxId, path, offset],
  );
  const end = offset + HEX_PAGE_BYTES;
  return (
    <>
      {sizeBytes <= HEX_PAGE_BYTES ? null : (
        <div class="row">
          <Button disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - HEX_PAGE_BYTES))}>
            Earlier
          </Button>
          <Button disabled={end >= sizeBytes} onClick={() => setOffset(end)}>
            Later
          </Button>
          <span class="hint" role="status">
            Bytes {offset} to {Math.min(end, sizeBytes)} of {sizeBytes}
          </span>
        </div>
      )}
      {error === undefined ? null : <ErrorBox error={error} />}
      {value === undefined ? null : (
        <pre class="file-hex" tabIndex={0} role="region" aria-label="Bytes">
          {hexLines(value.bytes, value.offset)
            .map(({ offset: at, bytes, letters }) => `${at}  ${bytes.padEnd(47)}  ${letters}`)
            .join("\n")}
        </pre>
      )}
    </>
  );
}
