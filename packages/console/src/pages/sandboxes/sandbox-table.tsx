import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { sandboxTitle } from "../../format/names.ts";
import { setQuery } from "../../router.tsx";
import { may } from "../../session.ts";
import { VirtualRows } from "../../ui/virtual-rows.tsx";
import { COLUMNS, type Column } from "./columns.tsx";
import { RowMenu } from "./row-menu.tsx";
import { clearSelection, selectAll, selected, toggle } from "./selection.ts";
import { useRowHeight } from "./row-height.ts";

interface SandboxTableProperties {
  readonly records: readonly SandboxRecord[];
  readonly by: string;
  readonly descending: boolean;
}

/** One row for each; only visible ones are in the page. */
export function SandboxTable({ records, by, descending }: SandboxTableProperties): JSX.Element {
  const rowHeight = useRowHeight();
  const ids = useMemo(() => records.map(({ id }) => id), [records]);
  const acting = may("use");
  const all = ids.length > 0 && ids.every((id) => selected.value.has(id));
  return (
    <div
      role="table"
      aria-label="Sandboxes"
      aria-rowcount={records.length + 1}
      class={acting ? "sandboxes acting" : "sandboxes"}
    >
      <div role="rowgroup" class="sandboxes-head">
        <div role="row" aria-rowindex={1} class="sandbox-row">
          {acting ? (
            <span role="columnheader" class="cell-choose">
              <input
                type="checkbox"
                aria-label={`Select all ${ids.length} listed`}
                checked={all}
                onChange={() => (all ? clearSelection() : selectAll(ids))}
              />
            </span>
          ) : null}
          {COLUMNS.map((column) => (
            <Heading key={column.id} column={column} by={by} descending={descending} />
          ))}
          {acting ? (
            <span role="columnheader" class="cell-menu">
              <span class="visually-hidden">Actions</span>
            </span>
          ) : null}
        </div>
      </div>
      <VirtualRows
        count={records.length}
        rowHeight={rowHeight}
        row={(index) => {
          const record = records[index];
          return record === undefined ? null : (
            <Row key={record.id} record={record} index={index} ids={ids} acting={acting} />
          );
        }}
      />
    </div>
  );
}

interface HeadingProperties {
  readonly column: Column;
  readonly by: string;
  readonly descending: boolean;
}

function Heading({ column, by, descending }: HeadingProperties): JSX.Element {
  const { id, title, order } = column;
  const active = by === id;
  const sort = active ? (descending ? "descending" : "ascending") : "none";
  const choose = (): void => setQuery({ sort: id, order: active && !descending ? "descending" : undefined });
  return (
    <span role="columnheader" class={`cell-${id}`} aria-sort={order === undefined ? undefined : sort}>
      {order === undefined ? (
        title
      ) : (
        <button type="button" class="sort" onClick={choose}>
          {title}
          <span aria-hidden="true">{active ? (descending ? " ↓" : " ↑") : ""}</span>
        </button>
      )}
    </span>
  );
}

interface RowProperties {
  readonly record: SandboxRecord;
  readonly index: number;
  readonly ids: readonly string[];
  readonly acting: boolean;
}

function Row({ record, index, ids, acting }: RowProperties): JSX.Element {
  const chosen = selected.value.has(record.id);
  return (
    <div role="row" aria-rowindex={index + 2} class={chosen ? "sandbox-row chosen" : "sandbox-row"}>
      {acting ? (
        <span role="cell" class="cell-choose">
          <input
            type="checkbox"
            aria-label={`Select ${sandboxTitle(record)}`}
            checked={chosen}
            onClick={(event) => toggle(record.id, ids, event.shiftKey)}
          />
        </span>
      ) : null}
      {COLUMNS.map(({ id, title, cell }) => (
        <span key={id} role="cell" class={`cell-${id}`} data-title={title}>
          {cell(record)}
        </span>
      ))}
      {acting ? (
        <span role="cell" class="cell-menu">
          <RowMenu record={record} />
        </span>
      ) : null}
    </div>
  );
}
