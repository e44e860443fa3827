import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import { markShared } from "../../src/checkpoints/packs/owned-packs.ts";
import { packId, packKey } from "../../src/checkpoints/packs/pack-names.ts";
import { PackPins } from "../../src/checkpoints/packs/pins.ts";
import { ObjectNotFoundError, type ObjectStore } from "../../src/store/store.ts";
import { replaced } from "./planted-bugs.ts";

const PAGE_LENGTH = 4;

/** An image in the tests of packs: the list of its packs, as text. */
export interface ModelImage {
  readonly imageKey: string;
  readonly packs: readonly string[];
}

/** The packs of a model's image. */
export async function packsOfModel(store: ObjectStore, imageKey: string): Promise<readonly string[] | undefined> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of store.read(imageKey)) chunks.push(chunk);
    return JSON.parse(Buffer.concat(chunks).toString()) as string[];
  } catch (error) {
    if (error instanceof ObjectNotFoundError) return undefined;
    throw new SandboxerError("image_damaged", `${imageKey} cannot be read.`, { cause: error });
  }
}

interface ModelOptions {
  readonly owner?: string;
  readonly onPinned?: () => Promise<void>;
}

/** Writes an image in the order that real ones are written in: pin, pack, marks, image, and the pin away. */
export async function writeModel(
  store: ObjectStore,
  publisher: string,
  imageKey: string,
  base: ModelImage | undefined,
  { owner, onPinned = async () => {} }: ModelOptions = {},
): Promise<ModelImage> {
  const uuid = randomUUID();
  const pin = await new PackPins(store, () => publisher).hold({ uuid, ...(base === undefined ? {} : { base }) });
  const own = packId(uuid, 0, owner);
  try {
    await onPinned();
    // It shares less and less with its base, so that packs become unneeded while others are still used.
    const taken = (base?.packs ?? []).slice(-2).filter((id) => !pin.isCondemned(id));
    const packs = [...taken, own];
    await store.write(packKey(own), [Buffer.from("blocks")]);
    await markShared(
      store,
      taken.map((id) => ({ id })),
      owner ?? "",
    );
    const { outcome } = await store.write(imageKey, [Buffer.from(JSON.stringify(packs))], { ifAbsent: true });
    if (outcome === "conflict") throw new Error(`${imageKey} is taken.`);
    await pin.release();
    return { imageKey, packs };
  } catch (error) {
    // A process that was killed does none of this: its store answers nothing any more.
    await store.delete(packKey(own)).catch(() => {});
    await pin.release();
    throw error;
  }
}

/** A store whose lists are made page by page, as those of buckets are: what comes and goes meanwhile may be in them. */
export function pageByPage(store: ObjectStore): ObjectStore {
  return replaced(store, {
    list: async function* (folder) {
      for (let last = ""; ;) {
        const all = await Array.fromAsync(store.list(folder));
        const page = all.filter(({ key }) => key > last).toSorted((a, b) => (a.key < b.key ? -1 : 1));
        yield* page.slice(0, PAGE_LENGTH);
        if (page.length <= PAGE_LENGTH) return;
        last = page[PAGE_LENGTH - 1]?.key ?? "";
      }
    },
  });
}

export class Killed extends Error {}

/**
 * A store that a process sees until it is killed, which it is before its call with this number. Its waits for a better
 * answer end by the signal: nobody moves the clock of the dead.
 */
export function killedAt(store: ObjectStore, call: number, death = new AbortController()): ObjectStore {
  let calls = 0;
  return new Proxy<ObjectStore>(store, {
    get: (target, property) => {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]): unknown => {
        calls += 1;
        if (calls >= call) {
          death.abort(new Killed(`Killed at call ${calls}.`));
          throw death.signal.reason;
        }
        return Reflect.apply(value, target, parameters);
      };
    },
  });
}
