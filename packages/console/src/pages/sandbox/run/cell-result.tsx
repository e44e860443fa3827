import type { CellResult, CellTable } from "@sandboxer/client";
import type { JSX } from "preact";
import { TableRegion } from "../../../ui/table-region.tsx";
import { plainText } from "../output-text.ts";

const SHOWN_ROWS = 100;
const SHOWN_CHARACTERS = 100_000;
const NAMED = ["html", "markdown", "latex", "javascript", "pdf", "chart"] as const;

/** A value of a cell. The sandbox chose it: it is shown as text, as a table or as a picture, never as a page. */
export function CellResultView({
  result,
  label,
}: {
  readonly result: CellResult;
  readonly label: string;
}): JSX.Element {
  const picture = pictureOf(result);
  const text = result.text ?? result.markdown ?? result.latex ?? jsonOf(result);
  const others = NAMED.filter((format) => result[format] !== undefined && result[format] !== text);
  return (
    <figure class="cell-result" aria-label={label}>
      {picture === undefined ? null : <img src={picture} alt={plainText(text ?? "a picture").slice(0, 200)} />}
      {result.table === undefined ? null : <ResultTable table={result.table} label={`Table of ${label}`} />}
      {text === undefined || picture !== undefined || result.table !== undefined ? null : (
        <pre class="output" tabIndex={0}>
          {plainText(text.slice(0, SHOWN_CHARACTERS))}
        </pre>
      )}
      {others.length === 0 ? null : <p class="hint">Also as {others.join(", ")}.</p>}
      {result.omitted === undefined ? null : <p class="hint">Too large: {result.omitted.join(", ")}.</p>}
    </figure>
  );
}

function ResultTable({ table, label }: { readonly table: CellTable; readonly label: string }): JSX.Element {
  const rows = table.rows.slice(0, SHOWN_ROWS);
  return (
    <>
      <TableRegion label={label} columns={table.columns.map(plainText)}>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((value, column) => (
              <td key={column}>{value === null ? "" : plainText(String(value))}</td>
            ))}
          </tr>
        ))}
      </TableRegion>
      {rows.length < table.rowCount ? (
        <p class="hint">
          The first {rows.length} of {table.rowCount} rows.
        </p>
      ) : null}
    </>
  );
}

/** In a picture no script runs, and nothing is loaded. */
function pictureOf({ png, jpeg, svg }: CellResult): string | undefined {
  if (png !== undefined) return `data:image/png;base64,${png}`;
  if (jpeg !== undefined) return `data:image/jpeg;base64,${jpeg}`;
  return svg === undefined ? undefined : `data:image/svg+xml,${encodeURIComponent(svg.toWellFormed())}`;
}

function jsonOf({ json }: CellResult): string | undefined {
  return json === undefined ? undefined : JSON.stringify(json, undefined, 2);
}
