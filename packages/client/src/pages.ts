interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** Every item of a paged list; the next page is requested when the current one is used up. */
export async function* everyItem<Item>(
  page: (cursor: { cursor?: string }) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  let { items, next_cursor: cursor } = await page({});
  for (;;) {
    yield* items;
    if (cursor === null) return;
    ({ items, next_cursor: cursor } = await page({ cursor }));
  }
}
