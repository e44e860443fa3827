import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { setQuery } from "../../router.tsx";
import { Button } from "../../ui/button.tsx";
import { itemTitle } from "./describe-item.ts";
import type { LineageItem } from "./forest.ts";
import type { Unfolding } from "./openness.ts";

interface ToolbarProperties {
  readonly search: string;
  readonly asList: boolean;
  readonly onlyFamily: boolean;
  /** The selected item: its family can be shown alone. */
  readonly familyOf: LineageItem | undefined;
  readonly shown: number;
  readonly all: number;
  readonly families: number;
  readonly onUnfold: (how: Unfolding) => void;
}

export function LineageToolbar(properties: ToolbarProperties): JSX.Element {
  const { search, asList, onlyFamily, familyOf, shown, all, families } = properties;
  const id = useId();
  return (
    <div class="row lineage-toolbar" role="group" aria-label="View options">
      <label class="visually-hidden" for={id}>
        Search sandboxes and snapshots
      </label>
      <input
        id={id}
        type="search"
        placeholder="Search by name, id, label"
        value={search}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      <Button pressed={!asList} onClick={() => setQuery({ view: "tree" })}>
        Drawing
      </Button>
      <Button pressed={asList} onClick={() => setQuery({ view: "list" })}>
        List
      </Button>
      <Button onClick={() => properties.onUnfold("all")}>Unfold all</Button>
      <Button onClick={() => properties.onUnfold("none")}>Fold all</Button>
      {familyOf === undefined ? null : (
        <Button pressed={onlyFamily} onClick={() => setQuery({ family: onlyFamily ? undefined : "only" })}>
          Only relatives of {itemTitle(familyOf)}
        </Button>
      )}
      <span class="hint" role="status">
        {families.toLocaleString()} {families === 1 ? "family" : "families"}, {shown.toLocaleString()}
        {shown === all ? "" : ` of ${all.toLocaleString()}`} nodes
      </span>
    </div>
  );
}
