import { z } from "zod";
import { ObjectNotFoundError, type ObjectStore } from "../../store/store.ts";

export const CONDEMNED_FOLDER = "condemned";

/** `condemned/{uuid}.json`: packs that a collection is about to remove. No image that is written from now on may use them. */
const condemnedSchema = z.looseObject({ format: z.literal(1), packs: z.array(z.string()) });

export interface Condemned {
  readonly key: string;
  /** Undefined when this release cannot read it: then it may name any pack. */
  readonly packs: readonly string[] | undefined;
}

export function condemnedKey(uuid: string): string {
  return `${CONDEMNED_FOLDER}/${uuid}.json`;
}

export async function writeCondemned(store: ObjectStore, uuid: string, packs: readonly string[]): Promise<void> {
  await store.writeText(condemnedKey(uuid), `${JSON.stringify({ format: 1, packs })}\n`);
}

/** All that are there. One that goes while it is being read belongs to a collection that has ended. */
export async function readCondemned(store: ObjectStore): Promise<readonly Condemned[]> {
  const found: Condemned[] = [];
  for await (const { key } of store.list(CONDEMNED_FOLDER)) {
    const text = await readSmallText(store, key);
    if (text === undefined) continue;
    found.push({ key, packs: parseOrUndefined(condemnedSchema, text)?.packs });
  }
  return found;
}

/** Undefined when there is no such blob. */
export async function readSmallText(store: ObjectStore, key: string): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of store.read(key)) chunks.push(chunk);
  } catch (error) {
    if (error instanceof ObjectNotFoundError) return undefined;
    throw error;
  }
  return Buffer.concat(chunks).toString("utf8");
}

export function parseOrUndefined<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
