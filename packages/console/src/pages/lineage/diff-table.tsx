import type { SnapshotDiff } from "@sandboxer/client";
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { formatBytes } from "../../format/bytes.ts";
import { Button } from "../../ui/button.tsx";

const PAGE = 300;
const KINDS = ["added", "changed", "removed"] as const;
type Change = (typeof KINDS)[number];
type FileChange = SnapshotDiff["changes"][number];
const CHIPS = { added: "running", changed: "saving", removed: "failed" } as const;

export function DiffTable({ diff }: { readonly diff: SnapshotDiff }): JSX.Element {
  const [search, setSearch] = useState("");
  const [hidden, setHidden] = useState<ReadonlySet<Change>>(new Set());
  const [shown, setShown] = useState(PAGE);
  const id = useId();
  const wanted = search.toLowerCase();
  const changes = diff.changes.filter(({ path, change }) => !hidden.has(change) && path.toLowerCase().includes(wanted));
  const toggle = (kind: Change): void => {
    const next = new Set(hidden);
    if (!next.delete(kind)) next.add(kind);
    setHidden(next);
  };
  return (
    <>
      <div class="row">
        {KINDS.map((kind) => (
          <Button key={kind} pressed={!hidden.has(kind)} onClick={() => toggle(kind)}>
            <span class={`chip chip-${CHIPS[kind]}`}>{kind}</span> {diff[kind].toLocaleString()}
          </Button>
        ))}
        <label class="visually-hidden" for={id}>
          Filter by path
        </label>
        <input
          id={id}
          type="search"
          placeholder="Filter by path"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span role="status" class="hint">
          {changes.length.toLocaleString()} listed
        </span>
      </div>
      <div class="diff-table" tabIndex={0} role="region" aria-label="Files that differ">
        <table>
          <thead>
            <tr>
              <th scope="col">Change</th>
              <th scope="col">Path</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {changes.slice(0, shown).map((change) => (
              <Row key={change.path} change={change} />
            ))}
          </tbody>
        </table>
      </div>
      {changes.length > shown ? (
        <Button onClick={() => setShown(shown + PAGE)}>Show {Math.min(PAGE, changes.length - shown)} more</Button>
      ) : null}
    </>
  );
}

function Row({ change: { path, change, kind, sizeBefore, sizeAfter } }: { readonly change: FileChange }): JSX.Element {
  return (
    <tr>
      <td>
        <span class={`chip chip-${CHIPS[change]}`}>{change}</span>
      </td>
      <td class="mono diff-path">
        {path}
        {kind === "file" ? null : <span class="hint"> {kind}</span>}
      </td>
      <td class="diff-size">{sizeBefore === null ? "–" : formatBytes(sizeBefore)}</td>
      <td class="diff-size">{sizeAfter === null ? "–" : formatBytes(sizeAfter)}</td>
    </tr>
  );
}
