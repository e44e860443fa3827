import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { z } from "zod";
import { LockedJsonFile } from "../support/locked-json-file.ts";
import { MARKER_KEY, notThere, readStoreId } from "./marker.ts";
import type { ObjectStore } from "./store.ts";

const FILE = "stores.json";

const fileSchema = z.looseObject({
  format: z.literal(1),
  stores: z.record(z.string(), z.looseObject({ id: z.string() })),
});
type Content = z.infer<typeof fileSchema>;

/**
 * The stores that the servers of a data directory have used, by address: an empty folder at a known address is a
 * missing mount, not a place for a new store.
 */
export class KnownStores {
  readonly #file: LockedJsonFile<Content>;

  constructor(dataDirectory: string) {
    this.#file = new LockedJsonFile<Content>(join(dataDirectory, FILE), fileSchema, { format: 1, stores: {} });
  }

  /** For people who have to correct it. */
  get path(): string {
    return this.#file.path;
  }

  async idOf(address: string): Promise<string | undefined> {
    const { stores } = await this.#file.read();
    return Object.hasOwn(stores, address) ? stores[address]?.id : undefined;
  }

  async remember(address: string, id: string): Promise<void> {
    if ((await this.idOf(address)) === id) return;
    await this.#file.change((content) => ({ ...content, stores: { ...content.stores, [address]: { id } } }));
  }
}

/**
 * The id of the store at the address; undefined if there is none. Throws if a different store is known to be there, or
 * the known one is missing.
 */
export async function findStoreId(store: ObjectStore, known: KnownStores | undefined): Promise<string | undefined> {
  const expected = await known?.idOf(store.address);
  const found = await readStoreId(store);
  if (known === undefined || expected === undefined || expected === found) return found;
  const { code, message, details } = notThere(store.address, expected, found);
  const hint =
    `Mount that store, or correct the address. If only ${MARKER_KEY} was lost, write it again: ` +
    `{"format":1,"id":"${expected}"}. If the store was replaced on purpose, remove its entry from ${known.path}.`;
  throw new SandboxerError(code, message, { hint, details });
}
