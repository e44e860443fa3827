import { type Rotation, rotateDataKeys } from "../checkpoints/keys/rotate-data-keys.ts";
import { type Sealing, sealRecords } from "../seals/seal-records.ts";
import { openExistingStore } from "./existing-store.ts";
import type { ServerConfig } from "./config.ts";
import { masterKeysOf, sealedStore } from "./encryption.ts";
import { openSecrets } from "./secrets.ts";

/** Manages the keys of a data directory for the CLI, without a server. */
export { KeyFile } from "../gateway/access/key-file.ts";
export { keyStatus, type KeyRecord } from "../gateway/access/key-records.ts";
export type { Sealing } from "../seals/seal-records.ts";

export interface RotatedStore extends Rotation {
  /** Null without a server key. */
  readonly records: Sealing | null;
}

/** Re-encrypts the data keys of a store with the current keys of this machine's config, and seals its records. */
export async function rotateEncryption(
  config: ServerConfig & { readonly store: string },
  { apply, warn }: { readonly apply: boolean; readonly warn: (message: string) => void },
): Promise<RotatedStore> {
  const masters = masterKeysOf(config, openSecrets(config, warn));
  const opened = await openExistingStore(config.store, config.dataDirectory);
  const { store, seals } = await sealedStore(opened, config, masters, warn);
  const rotation = await rotateDataKeys(store, masters, { apply });
  return { ...rotation, records: seals === undefined ? null : await sealRecords(store, seals, { apply }) };
}
