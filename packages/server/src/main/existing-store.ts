import { asSandboxerError, type SandboxerError } from "@sandboxer/protocol";
import { GuardedStore } from "../store/guarded-store.ts";
import { findStoreId, KnownStores } from "../store/known-stores.ts";
import { refuseEmpty } from "../store/marker.ts";
import { openDriver } from "../store/open-driver.ts";
import type { ObjectStore } from "../store/store.ts";

/** For commands: a mistyped path or a missing mount must not become a new store; nothing is written. */
export async function openExistingStore(address: string, dataDirectory: string): Promise<ObjectStore> {
  const driver = await openDriver(address);
  const id = await findStoreId(driver, new KnownStores(dataDirectory));
  if (id !== undefined) return new GuardedStore(driver, id);
  await refuseEmpty(driver);
  // A store of an earlier release; the next server that opens it writes its marker.
  return driver;
}

/** Why a folder is not the store that was there; undefined if it is, or if none ever was. */
export async function storeProblem(address: string, dataDirectory: string): Promise<SandboxerError | undefined> {
  try {
    await findStoreId(await openDriver(address), new KnownStores(dataDirectory));
    return undefined;
  } catch (error) {
    return asSandboxerError(error);
  }
}
