import { isOfLocalCopy } from "../../checkpoints/image-errors.ts";

/**
 * Loads a state, and tries once more if the local copy differed from what was saved: the bad copy is dropped by then,
 * and the state comes from the store.
 */
export async function withGoodCopy<Result>(load: () => Promise<Result>): Promise<Result> {
  try {
    return await load();
  } catch (error) {
    if (!isOfLocalCopy(error)) throw error;
    return await load();
  }
}
