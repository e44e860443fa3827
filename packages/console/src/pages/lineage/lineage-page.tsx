import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { sandboxes, sandboxesState } from "../../live/sandboxes.ts";
import { keepSnapshots, loadSnapshots, snapshots, snapshotsState } from "../../live/snapshots.ts";
import { query, setQuery } from "../../router.tsx";
import { Button } from "../../ui/button.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { comparisonOf, inOrder, type Comparison } from "./compare.ts";
import { itemTitle } from "./describe-item.ts";
import { DiffDialog } from "./diff-dialog.tsx";
import { growForest, sandboxKey, snapshotKey, type LineageItem } from "./forest.ts";
import { LineageToolbar } from "./lineage-toolbar.tsx";
import { NodePanel } from "./node-panel.tsx";
import { openKeys, type Unfolding } from "./openness.ts";
import { countNodes, findPath, matches, matchingFamilies } from "./select.ts";
import { TreeCanvas, type TreeProperties } from "./tree-canvas.tsx";
import { TreeList } from "./tree-list.tsx";
import "./lineage.css";

interface Compared {
  readonly comparison: Comparison;
  readonly names: readonly [string, string];
}

/** The tree of sandboxes and snapshots, and actions on them. */
export function LineagePage(): JSX.Element {
  useEffect(() => {
    const end = new AbortController();
    keepSnapshots(end.signal);
    return () => end.abort();
  }, []);
  const search = query.value.get("q") ?? "";
  const focus = query.value.get("focus") ?? undefined;
  const onlyFamily = query.value.has("family");
  const asList = (query.value.get("view") ?? (innerWidth < 700 ? "list" : "tree")) === "list";
  const [byHand, setByHand] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [unfolding, setUnfolding] = useState<Unfolding>("auto");
  const [markedKey, setMarkedKey] = useState<string | undefined>(undefined);
  const [compared, setCompared] = useState<Compared | undefined>(undefined);
  const heading = useRef<HTMLHeadingElement>(null);

  const whole = useMemo(
    () => growForest([...sandboxes.value.values()], [...snapshots.value.values()]),
    [sandboxes.value, snapshots.value],
  );
  const selectedKey = focus === undefined ? undefined : keyOfId(focus);
  const path = useMemo(
    () => (selectedKey === undefined ? undefined : findPath(whole, selectedKey)),
    [whole, selectedKey],
  );
  const selected = path?.at(-1);
  const forest = useMemo(() => {
    const [family] = path ?? [];
    return onlyFamily && family !== undefined ? [family] : matchingFamilies(whole, search);
  }, [whole, search, onlyFamily, path?.[0]]);
  const text = search.trim().toLowerCase();
  const isFound = useMemo<TreeProperties["isFound"]>(
    () =>
      ({ item }) =>
        text !== "" && matches(item, text),
    [text],
  );
  const open = useSameSet(
    useMemo(
      () => openKeys(forest, unfolding, byHand, (node) => isFound(node) || node.item.key === selectedKey),
      [forest, unfolding, byHand, isFound, selectedKey],
    ),
  );
  const isOpen = useMemo<TreeProperties["isOpen"]>(
    () =>
      ({ item }) =>
        open.has(item.key),
    [open],
  );
  const marked = markedKey === undefined ? undefined : findPath(whole, markedKey)?.at(-1)?.item;

  const select = (key: string): void => setQuery({ focus: idOfKey(key) });
  const show = (key: string): void => {
    select(key);
    requestAnimationFrame(() => heading.current?.focus());
  };
  const compare = (a: LineageItem, b: LineageItem): void => {
    const [from, to] = inOrder(a, b);
    setMarkedKey(undefined);
    setCompared({ comparison: comparisonOf(from, to), names: [itemTitle(from), itemTitle(to)] });
  };
  const nowMs = useMemo(() => Date.now(), [whole]);
  const properties: TreeProperties = {
    forest,
    isOpen,
    isFound,
    selectedKey,
    comparedKey: markedKey,
    nowMs,
    onSelect: select,
    onToggle: (key, toOpen) => setByHand((before) => new Map(before).set(key, toOpen)),
    onShow: show,
  };
  return (
    <section class="page lineage">
      <h1>Lineage</h1>
      <LineageToolbar
        search={search}
        asList={asList}
        onlyFamily={onlyFamily}
        familyOf={selected?.item}
        shown={countNodes(forest)}
        all={countNodes(whole)}
        families={forest.length}
        onUnfold={(how) => {
          setUnfolding(how);
          setByHand(new Map());
        }}
      />
      <Trouble />
      {marked === undefined ? null : (
        <p class="lineage-marked row" role="status">
          Comparing {marked.kind} <strong>{itemTitle(marked)}</strong>: select a second item.
          <Button onClick={() => setMarkedKey(undefined)}>Stop comparing</Button>
        </p>
      )}
      <div class={selected === undefined ? "lineage-body" : "lineage-body lineage-body-split"}>
        {forest.length === 0 ? (
          <Nothing searched={search !== ""} />
        ) : asList ? (
          <TreeList {...properties} />
        ) : (
          <TreeCanvas {...properties} />
        )}
        {selected === undefined ? (
          <Missing focus={focus} />
        ) : (
          <NodePanel
            node={selected}
            compared={marked}
            heading={heading}
            onMark={() => setMarkedKey(marked === undefined ? selected.item.key : undefined)}
            onCompare={() => marked !== undefined && compare(marked, selected.item)}
            onClose={() => setQuery({ focus: undefined })}
          />
        )}
      </div>
      {asList ? null : (
        <p class="hint">
          Arrow keys move along the tree, Space folds, Enter opens the details; + − 0 zoom, and so does the wheel with
          Ctrl.
        </p>
      )}
      {compared === undefined ? null : <DiffDialog {...compared} onClose={() => setCompared(undefined)} />}
    </section>
  );
}

/** Returns the previous value if it is equal, so that dependents need not be computed again. */
function useSameSet(set: ReadonlySet<string>): ReadonlySet<string> {
  const kept = useRef(set);
  if (kept.current.size !== set.size || !set.isSubsetOf(kept.current)) kept.current = set;
  return kept.current;
}

/** An id is a sandbox's or a snapshot's. */
function keyOfId(id: string): string {
  return sandboxes.value.has(id) ? sandboxKey(id) : snapshotKey(id);
}

function idOfKey(key: string): string {
  return key.slice(key.indexOf(":") + 1);
}

function Trouble(): JSX.Element | null {
  const error = snapshotsState.value.error ?? sandboxesState.value.error;
  if (error === undefined) return null;
  return (
    <ErrorBox error={error}>
      <Button onClick={() => void loadSnapshots()}>Try again</Button>
    </ErrorBox>
  );
}

function Missing({ focus }: { readonly focus: string | undefined }): JSX.Element | null {
  if (focus === undefined || !snapshotsState.value.loaded || !sandboxesState.value.loaded) return null;
  return (
    <p class="card" role="status">
      There is no sandbox or snapshot with the id <code>{focus}</code>.{" "}
      <Button onClick={() => setQuery({ focus: undefined })}>Show everything</Button>
    </p>
  );
}

function Nothing({ searched }: { readonly searched: boolean }): JSX.Element {
  if (!snapshotsState.value.loaded || !sandboxesState.value.loaded) return <p class="page-note">Loading …</p>;
  if (searched) {
    return (
      <p class="card" role="status">
        No results. <Button onClick={() => setQuery({ q: undefined })}>Clear the search</Button>
      </p>
    );
  }
  return (
    <p class="card">
      There are no sandboxes and no snapshots. Create a sandbox, then run <code>sandboxer snapshot NAME</code> or{" "}
      <code>sandboxer fork NAME</code>.
    </p>
  );
}
