import { randomUUID } from "node:crypto";
import type { ObjectStore } from "../../store/store.ts";
import { condemn, readCondemned } from "../packs/condemned.ts";

/**
 * Keeps every server from naming blocks of these packs again, so that the next save of a sandbox that runs writes anew
 * what is damaged. Who writes an image does not read the blocks that its base has already, and would name them as they are.
 * A pack goes when no image names it any more, and its verdict after it.
 */
export async function shunPacks(store: ObjectStore, packs: ReadonlySet<string>): Promise<void> {
  if (packs.size === 0) return;
  const known = new Set((await readCondemned(store)).flatMap((verdict) => verdict.packs ?? []));
  const fresh = [...packs.difference(known)];
  if (fresh.length > 0) await condemn(store, randomUUID(), fresh);
}
