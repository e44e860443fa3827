import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { type ObjectStore, readWhole } from "../../store/store.ts";
import { jsonOf } from "../../support/json.ts";
import { unlessDamaged } from "../../support/record-damage.ts";

const CONDEMNED_FOLDER = "condemned";

/** `condemned/{uuid}.json`: packs that a collection is about to remove. No image that is begun from now on may use them. */
const condemnedSchema = z.looseObject({ format: z.literal(1), packs: z.array(z.string()) });

export interface Condemned {
  readonly key: string;
  /** Undefined when this release cannot read it: then it may name any pack. */
  readonly packs: readonly string[] | undefined;
}

/** The key of what was written. */
export async function condemn(store: ObjectStore, uuid: string, packs: readonly string[]): Promise<string> {
  const key = `${CONDEMNED_FOLDER}/${uuid}.json`;
  await store.writeText(key, `${JSON.stringify({ format: 1, packs })}\n`);
  return key;
}

/** All that are there. One that goes while it is being read belongs to a collection that has ended. */
export async function readCondemned(store: ObjectStore): Promise<readonly Condemned[]> {
  const found: Condemned[] = [];
  for await (const { key } of store.list(CONDEMNED_FOLDER)) {
    const bytes = await readWhole(store, key).catch(unlessDamaged);
    if (bytes === undefined) continue;
    const verdict = bytes === "damaged" ? undefined : condemnedSchema.safeParse(jsonOf(bytes)).data;
    found.push({ key, packs: verdict?.packs });
  }
  return found;
}

/** To be asked after the packs were pinned: what a collection has condemned before may go, though it is there now. */
export async function refuseCondemned(store: ObjectStore, packs: readonly { readonly id: string }[]): Promise<void> {
  const ids = new Set(packs.map(({ id }) => id));
  const condemned = (await readCondemned(store)).some((each) => each.packs?.some((id) => ids.has(id)) ?? true);
  if (ids.size === 0 || !condemned) return;
  throw new SandboxerError(
    "checkpoint_failed",
    "Garbage collection is about to remove parts of this image from the store.",
    {
      hint: "Try again when the collection has ended.",
    },
  );
}

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
