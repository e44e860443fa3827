import { z } from "zod";
import { ObjectNotFoundError, type ObjectStore } from "../../store/store.ts";

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
    try {
      const text = Buffer.concat(await Array.fromAsync(store.read(key))).toString("utf8");
      found.push({ key, packs: condemnedSchema.safeParse(JSON.parse(text)).data?.packs });
    } catch (error) {
      if (error instanceof SyntaxError) found.push({ key, packs: undefined });
      else if (!(error instanceof ObjectNotFoundError)) throw error;
    }
  }
  return found;
}
