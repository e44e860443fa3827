/** Begins the work of each item up to so many ahead of whoever takes the results, which come in the items' order. */
export async function* beginAhead<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  begin: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  const underWay: Promise<Result>[] = [];
  for await (const item of items) {
    const result = begin(item);
    // One that nobody comes to take any more fails unheard.
    result.catch(() => {});
    underWay.push(result);
    const oldest = underWay.length < limit ? undefined : underWay.shift();
    if (oldest !== undefined) yield await oldest;
  }
  for (const result of underWay) yield await result;
}
