import { type Rotation, rotateDataKeys } from "../checkpoints/keys/rotate-data-keys.ts";
import { openExistingStore } from "./existing-store.ts";
import type { ServerConfig } from "./config.ts";
import { masterKeysOf } from "./encryption.ts";
import { openSecrets } from "./secrets.ts";

/** The keys of a data directory, for the CLI: no server is needed. */
export { KeyFile } from "../gateway/access/key-file.ts";
export { keyStatus, type KeyRecord } from "../gateway/access/key-records.ts";
export type { Rotation } from "../checkpoints/keys/rotate-data-keys.ts";

/** Encrypts the data keys of a store with the present keys of this machine's config. */
export async function rotateEncryption(
  config: ServerConfig & { readonly store: string },
  { apply, warn }: { readonly apply: boolean; readonly warn: (message: string) => void },
): Promise<Rotation> {
  const masters = masterKeysOf(config, openSecrets(config, warn));
  return await rotateDataKeys(await openExistingStore(config.store, config.dataDirectory), masters, { apply });
}
