import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { z } from "zod";
import { type ObjectStore, trySwap } from "./store.ts";
import { unlessDamaged } from "../support/record-damage.ts";
import { jsonOf } from "../support/json.ts";

/** The cell in a store's root that says which store it is. It is written once. */
export const MARKER_KEY = "store.json";

const markerSchema = z.looseObject({ format: z.literal(1), id: z.uuid() });

/** The id of the store; undefined without a marker. */
export async function readStoreId(store: ObjectStore): Promise<string | undefined> {
  const cell = await store.readCell(MARKER_KEY).catch(unlessDamaged);
  if (cell === undefined) return undefined;
  const id = cell === "damaged" ? undefined : idIn(cell.body);
  if (id !== undefined) return id;
  throw new SandboxerError("store_unavailable", `${MARKER_KEY} of the store ${store.address} cannot be read.`, {
    hint: `Restore it: {"format":1,"id":"ID"}. The ids of the stores that a server has used are in stores.json of its data directory.`,
  });
}

/**
 * Whether a marker file on this machine has this id; the cheapest check. On a local disk a synchronous read is
 * cheapest; a network file may be slow.
 */
export async function hasMarkerFile(path: string, id: string, atOnce: boolean): Promise<boolean> {
  try {
    return idIn(atOnce ? readFileSync(path, "utf8") : await readFile(path, "utf8")) === id;
  } catch {
    return false;
  }
}

/** Gives the store an id, unless another server does so meanwhile; then that is its id. */
export async function writeStoreId(store: ObjectStore): Promise<string> {
  const id = randomUUID();
  const marker = { format: 1, id, created_at: new Date().toISOString() };
  const { outcome } = await trySwap(store, MARKER_KEY, undefined, Buffer.from(`${JSON.stringify(marker)}\n`));
  if (outcome === "written") return id;
  const present = await readStoreId(store);
  if (present !== undefined) return present;
  throw new SandboxerError("store_unavailable", `The store ${store.address} does not retain ${MARKER_KEY}.`);
}

/** Throws if there is no store. Everything that a server writes besides the marker is in a folder. */
export async function refuseEmpty(store: ObjectStore): Promise<void> {
  const { done } = await store.listFolders("")[Symbol.asyncIterator]().next();
  if (done !== true) return;
  throw new SandboxerError("store_unavailable", `There is no store at ${store.address}.`, {
    hint: "Check the address, and that the store is mounted. A server without --require-store starts a new store there.",
  });
}

/** For a store that disappeared or was replaced by another one. */
export function notThere(address: string, id: string, found: string | undefined): SandboxerError {
  const what =
    found === undefined
      ? `The store ${id} is not at ${address}: ${MARKER_KEY} is missing there`
      : `Another store is at ${address}: its id is ${found}, not ${id}`;
  return new SandboxerError("store_unavailable", `${what}.`, {
    hint: "Mount the store again, or restore its objects. Until then sandboxes are frozen, and nothing is lost.",
    details: { store_id: id, found_id: found ?? null },
  });
}

function idIn(source: Uint8Array | string): string | undefined {
  return markerSchema.safeParse(jsonOf(source)).data?.id;
}
