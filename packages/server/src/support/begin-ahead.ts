/** Starts the work of a few items ahead of the consumer; the results come in the items' order. */
export async function* beginAhead<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  begin: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  const underWay: Promise<Result>[] = [];
  for await (const item of items) {
    const result = begin(item);
    // The failure of an abandoned item is ignored.
    result.catch(() => {});
    underWay.push(result);
    const oldest = underWay.length < limit ? undefined : underWay.shift();
    if (oldest !== undefined) yield await oldest;
  }
  for (const result of underWay) yield await result;
}
