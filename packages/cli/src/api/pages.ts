import type { Transport } from "@sandboxer/client/transport";
import type { ResponseOf, RouteName, Routes } from "@sandboxer/protocol";

/** The largest page that servers return. */
const PAGE = 1000;

/** The paged lists. */
type ListName = {
  [Name in RouteName]: Routes[Name] extends { query: { shape: { cursor: unknown } } } ? Name : never;
}[RouteName];
type ItemOf<Name extends ListName> = ResponseOf<Routes[Name]> extends { items: (infer Item)[] } ? Item : never;
type PageOf<Name extends ListName> = ResponseOf<Routes[Name]>;
type Filters = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Every item of a list across its pages; `limit` ends it early. `onPage` gets the other fields of each page. */
export async function* eachItem<Name extends ListName>(
  client: Transport,
  name: Name,
  filters: Filters = {},
  limit = Number.POSITIVE_INFINITY,
  onPage: (page: PageOf<Name>) => void = () => {},
): AsyncGenerator<ItemOf<Name>> {
  let left = limit;
  let cursor: string | null = null;
  do {
    const query = { ...filters, limit: Math.min(left, PAGE), ...(cursor === null ? {} : { cursor }) };
    const page = (await client.call(name, { query } as never)) as { items: ItemOf<Name>[]; next_cursor: string | null };
    onPage(page as PageOf<Name>);
    yield* page.items.slice(0, left);
    left -= page.items.length;
    cursor = page.items.length === 0 ? null : page.next_cursor;
  } while (cursor !== null && left > 0);
}

export async function allItems<Name extends ListName>(
  client: Transport,
  name: Name,
  filters?: Filters,
  limit?: number,
  onPage?: (page: PageOf<Name>) => void,
): Promise<ItemOf<Name>[]> {
  return Array.fromAsync(eachItem(client, name, filters, limit, onPage));
}
