import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { type ObjectStore, readWhole } from "../../store/store.ts";
import { jsonOf } from "../../support/json.ts";
import { unlessDamaged } from "../../support/record-damage.ts";

const CONDEMNED_FOLDER = "condemned";

/**
 * `condemned/{uuid}.json`: packs that a collection is about to remove. No image that begins from now on may use them.
 */
const condemnedSchema = z.looseObject({ format: z.literal(1), packs: z.array(z.string()) });

export interface Condemned {
  readonly key: string;
  /** Undefined if this release cannot read it: then it may name any pack. */
  readonly packs: readonly string[] | undefined;
}

/** Returns the key of the verdict. */
export async function condemn(store: ObjectStore, uuid: string, packs: readonly string[]): Promise<string> {
  const key = `${CONDEMNED_FOLDER}/${uuid}.json`;
  await store.writeText(key, `${JSON.stringify({ format: 1, packs })}\n`);
  return key;
}

/** All verdicts. A verdict that disappears while it is read belongs to a finished collection. */
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

/** Call it after the packs were pinned: a pack that was condemned before may be removed, although it exists now. */
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
 * Keeps every server from referencing blocks of these packs, so that the next save of a running sandbox writes damaged
 * blocks again. A writer does not read the blocks that its base already has, and would reference them unchanged. A pack
 * is removed when no image references it any more, and its verdict after it.
 */
export async function shunPacks(store: ObjectStore, packs: ReadonlySet<string>): Promise<void> {
  if (packs.size === 0) return;
  const known = new Set((await readCondemned(store)).flatMap((verdict) => verdict.packs ?? []));
  const fresh = [...packs.difference(known)];
  if (fresh.length > 0) await condemn(store, randomUUID(), fresh);
}
