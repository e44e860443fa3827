import { SandboxerError } from "@sandboxer/protocol";
import type { ListPlace as Place } from "../../manager/observing/list-sandboxes.ts";

export interface Page<Item> {
  readonly items: Item[];
  readonly next_cursor: string | null;
}

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** A page of a list that can start after a position; other data that is read with it is in the page too. */
export async function pageBehind<Read extends { readonly items: Place[]; readonly more: boolean }>(
  { limit, cursor }: PageQuery,
  read: (page: { readonly limit: number; readonly after: Place | undefined }) => Promise<Read>,
): Promise<Omit<Read, "more"> & Pick<Page<never>, "next_cursor">> {
  const { more, ...page } = await read({ limit, after: cursor === undefined ? undefined : decodeCursor(cursor) });
  const last = page.items.at(-1);
  return { ...page, next_cursor: more && last !== undefined ? encodeCursor(last) : null };
}

/** One page of a sorted list, newest first. The cursor is the position of the last item of the previous page. */
export function pageOfList<Item extends Place>(all: readonly Item[], query: PageQuery): Page<Item> {
  return pageOfPlaces(all, query, (item) => item);
}

/** The same for items whose time field has another name. */
export function pageOfPlaces<Item>(
  all: readonly Item[],
  { limit, cursor }: PageQuery,
  placeOf: (item: Item) => Place,
): Page<Item> {
  const start = cursor === undefined ? 0 : placeAfter(all.map(placeOf), decodeCursor(cursor));
  const items = all.slice(start, start + limit);
  const last = items.at(-1);
  const more = start + items.length < all.length;
  return { items, next_cursor: more && last !== undefined ? encodeCursor(placeOf(last)) : null };
}

export function wholeList<Item>(items: Item[]): Page<Item> {
  return { items, next_cursor: null };
}

function placeAfter(places: readonly Place[], last: Place): number {
  const there = places.findIndex(({ id }) => id === last.id);
  if (there !== -1) return there + 1;
  const next = places.findIndex(({ id, created_at }) => {
    return created_at < last.created_at || (created_at === last.created_at && id > last.id);
  });
  return next === -1 ? places.length : next;
}

export function encodeCursor({ created_at, id }: Place): string {
  return Buffer.from(`${created_at} ${id}`).toString("base64url");
}

/** Throws `bad_request`. */
export function decodeCursor(cursor: string): Place {
  const [, created_at, id] = /^(\S+) (\S+)$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (created_at !== undefined && id !== undefined) return { created_at, id };
  throw new SandboxerError("bad_request", "The cursor does not belong to this list.", {
    hint: "Send the next_cursor of the previous page unchanged, or omit the cursor to read the list from the beginning.",
  });
}
