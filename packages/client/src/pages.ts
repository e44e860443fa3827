interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** Every item of a list that comes in pages; a page is asked for when the one before is used up. */
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
