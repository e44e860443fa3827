import type { FileEntry } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatBytes } from "../../../format/bytes.ts";
import { Link, setQuery } from "../../../router.tsx";
import { Age } from "../../../ui/age.tsx";
import { useMedia } from "../../../ui/use-media.ts";
import { VirtualRows } from "../../../ui/virtual-rows.tsx";
import { filesAddress } from "./addresses.ts";
import { EntryDialog, EntryMenu, type EntryRequest } from "./entry-menu.tsx";
import { FileName } from "./file-name.tsx";
import { joinPath } from "./paths.ts";
import { modeText, ORDERS, type Order } from "./sort-entries.ts";
import { plainName } from "./visible-name.ts";

/** As in files.css: a row, and a card of a narrow page. */
const ROW_HEIGHT = 40;
const CARD_HEIGHT = 64;
const TITLES: Readonly<Record<Order, string>> = {
  name: "Name",
  size: "Size",
  mode: "Mode",
  owner: "Owner",
  modified: "Changed",
};
const KINDS: Readonly<Record<FileEntry["kind"], { readonly text: string; readonly sign: string }>> = {
  folder: { text: "folder", sign: "▸" },
  file: { text: "file", sign: "·" },
  symlink: { text: "link", sign: "↪" },
  other: { text: "special", sign: "∗" },
};

interface EntryTableProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly entries: readonly FileEntry[];
  readonly by: Order;
  readonly descending: boolean;
}

/** One row for each entry; only visible ones are in the page. */
export function EntryTable({ sandboxId, folder, entries, by, descending }: EntryTableProperties): JSX.Element {
  const rowHeight = useMedia("(max-width: 760px)") ? CARD_HEIGHT : ROW_HEIGHT;
  const [request, setRequest] = useState<EntryRequest>();
  return (
    <div role="table" aria-label="Entries" aria-rowcount={entries.length + 1} class="entries">
      <div role="rowgroup" class="entries-head">
        <div role="row" aria-rowindex={1} class="entry-row">
          {ORDERS.map((order) => (
            <Heading key={order} order={order} active={order === by} descending={descending} />
          ))}
          <span role="columnheader" class="entry-menu">
            <span class="visually-hidden">Actions</span>
          </span>
        </div>
      </div>
      <VirtualRows
        count={entries.length}
        rowHeight={rowHeight}
        row={(index) => {
          const entry = entries[index];
          if (entry === undefined) return null;
          return (
            <Row
              key={entry.name}
              sandboxId={sandboxId}
              folder={folder}
              entry={entry}
              index={index}
              onRequest={setRequest}
            />
          );
        }}
      />
      {request === undefined ? null : (
        <EntryDialog sandboxId={sandboxId} folder={folder} request={request} onClose={() => setRequest(undefined)} />
      )}
    </div>
  );
}

interface HeadingProperties {
  readonly order: Order;
  readonly active: boolean;
  readonly descending: boolean;
}

function Heading({ order, active, descending }: HeadingProperties): JSX.Element {
  const choose = (): void =>
    setQuery({
      sort: order === "name" ? undefined : order,
      order: active && !descending ? "descending" : undefined,
    });
  return (
    <span
      role="columnheader"
      class={`entry-${order}`}
      aria-sort={active ? (descending ? "descending" : "ascending") : "none"}
    >
      <button type="button" class="sort" onClick={choose}>
        {TITLES[order]}
        <span aria-hidden="true">{active ? (descending ? " ↓" : " ↑") : ""}</span>
      </button>
    </span>
  );
}

interface RowProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly entry: FileEntry;
  readonly index: number;
  readonly onRequest: (request: EntryRequest) => void;
}

function Row({ sandboxId, folder, entry, index, onRequest }: RowProperties): JSX.Element {
  const { name, kind, mode, uid, gid, sizeBytes, modifiedAt, linkTarget } = entry;
  const { text, sign } = KINDS[kind];
  return (
    <div role="row" aria-rowindex={index + 2} class="entry-row">
      <span role="cell" class="entry-name" title={plainName(name)}>
        <span class={`entry-kind entry-${kind}`} title={text} aria-hidden="true">
          {sign}
        </span>
        <span class="visually-hidden">{text} </span>
        <Link to={filesAddress(sandboxId, joinPath(folder, name))} class="entry-link">
          <FileName name={name} />
        </Link>
        {linkTarget === null ? null : (
          <span class="hint entry-target">
            {" → "}
            <FileName name={linkTarget} />
          </span>
        )}
      </span>
      <span role="cell" class="entry-size" title={`${sizeBytes} bytes`}>
        {kind === "folder" ? "" : formatBytes(sizeBytes)}
      </span>
      <span role="cell" class="entry-mode mono" title={(mode & 0o7777).toString(8).padStart(4, "0")}>
        {modeText(mode)}
      </span>
      <span role="cell" class="entry-owner" title="User and group">
        {uid}:{gid}
      </span>
      <span role="cell" class="entry-modified">
        <Age time={modifiedAt} />
      </span>
      <span role="cell" class="entry-menu">
        <EntryMenu sandboxId={sandboxId} folder={folder} entry={entry} onRequest={onRequest} />
      </span>
    </div>
  );
}
