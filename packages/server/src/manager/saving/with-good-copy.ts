import { isOfLocalCopy } from "../../checkpoints/image-errors.ts";

/**
 * Loads a state, and once more when what lay on this machine of it was not what was saved: it is forgotten by then, and
 * comes from the store.
 */
export async function withGoodCopy<Result>(load: () => Promise<Result>): Promise<Result> {
  try {
    return await load();
  } catch (error) {
    if (!isOfLocalCopy(error)) throw error;
    return await load();
  }
}
