import { signal } from "@preact/signals";

/** The selected sandboxes, by id. */
export const selected = signal<ReadonlySet<string>>(new Set());

/** Where a Shift selection begins. */
let anchor: string | undefined;

/** Selects or deselects one; with `range` all between the last one and this one, in the order of `shown`. */
export function toggle(id: string, shown: readonly string[], range: boolean): void {
  const next = new Set(selected.value);
  const on = !next.has(id);
  for (const each of range && anchor !== undefined ? between(shown, anchor, id) : [id]) {
    if (on) next.add(each);
    else next.delete(each);
  }
  anchor = id;
  selected.value = next;
}

export function selectAll(ids: readonly string[]): void {
  selected.value = new Set(ids);
}

export function clearSelection(): void {
  anchor = undefined;
  selected.value = new Set();
}

function between(shown: readonly string[], from: string, to: string): readonly string[] {
  const places = [shown.indexOf(from), shown.indexOf(to)].toSorted((a, b) => a - b);
  const [first = -1, last = -1] = places;
  return first === -1 ? [to] : shown.slice(first, last + 1);
}
