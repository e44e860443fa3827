import type { CollectionContext } from "./garbage.ts";

/** Removes the entries of something that was just removed, for good. */
export async function forgetEntries({ store, indexed }: CollectionContext, keys: readonly string[]): Promise<void> {
  if (indexed !== true) return;
  await store.removeNames(keys).catch(() => {
    // The next comparison finds them.
  });
}
