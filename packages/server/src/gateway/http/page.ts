import { SandboxerError } from "@sandboxer/protocol";

export interface Page<Item> {
  readonly items: Item[];
  readonly next_cursor: string | null;
}

/**
 * One page of a list that is sorted. The cursor is the id of the last item of the page before; when that one has gone
 * meanwhile, the list has to be read from its beginning again.
 */
export function pageOfList<Item extends { readonly id: string }>(
  all: readonly Item[],
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Page<Item> {
  const start = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
  if (cursor !== undefined && start === 0) {
    throw new SandboxerError("bad_request", "The cursor is not in the list any more.", {
      hint: "Read the list from its beginning, without a cursor.",
    });
  }
  const items = all.slice(start, start + limit);
  const more = start + items.length < all.length;
  return { items, next_cursor: more ? (items.at(-1)?.id ?? null) : null };
}

export function wholeList<Item>(items: Item[]): Page<Item> {
  return { items, next_cursor: null };
}
