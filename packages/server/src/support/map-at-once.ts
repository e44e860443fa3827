/** Maps items with limited concurrency; the results are in the items' order. */
export async function mapAtOnce<T, R>(
  items: readonly T[],
  limit: number,
  action: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  const results: R[] = [];
  const remaining = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of remaining) {
      signal?.throwIfAborted();
      results[index] = await action(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return results;
}
