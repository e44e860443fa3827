import type { BucketStoreOptions } from "./bucket/bucket-api.ts";
import type { DirectoryOptions } from "./directory/directory-store.ts";
import { GuardedStore } from "./guarded-store.ts";
import { findStoreId, type KnownStores } from "./known-stores.ts";
import { refuseEmpty, writeStoreId } from "./marker.ts";
import { openDriver } from "./open-driver.ts";
import type { ObjectStore } from "./store.ts";

export interface StoreOptions extends BucketStoreOptions, DirectoryOptions {
  /** Refuse an empty location instead of initializing a store there. */
  readonly mustExist?: boolean;
  /** The known stores by address; a different or missing store is refused. */
  readonly known?: KnownStores;
}

/**
 * Opens the store at a path, a `file:` URL, or the URL of a bucket. An empty store, and one of an earlier release, gets
 * its marker. From then on it is that store or none.
 */
export async function openStore(address: string, options: StoreOptions = {}): Promise<ObjectStore> {
  const { known, mustExist = false } = options;
  const driver = await openDriver(address, options);
  let id = await findStoreId(driver, known);
  if (id === undefined) {
    if (mustExist) await refuseEmpty(driver);
    id = await writeStoreId(driver);
  }
  await known?.remember(driver.address, id);
  return new GuardedStore(driver, id, options.syncs === "behind the answer");
}
