import { keyUnavailable } from "./key-errors.ts";
import type { MasterKey } from "./master-key.ts";

/** The master keys of a server, by the names of their secrets. */
export interface MasterKeys {
  /** The default encryption key; undefined: no encryption. */
  readonly defaultName: string | undefined;
  /** Earlier keys: data under them can be read. */
  readonly oldNames: readonly string[];
  /** Reads it from its source, each time. `key_unavailable` names the secret, never the value. */
  resolve(name: string): Promise<MasterKey>;
}

export const NO_MASTER_KEYS: MasterKeys = {
  defaultName: undefined,
  oldNames: [],
  resolve: async (name) => {
    throw keyUnavailable(`This server has no encryption key "${name}".`, { key: name });
  },
};

/** The keys that can be read, the current one first. `onMissing` gets the name of every other key. */
export async function readableKeys(masters: MasterKeys, onMissing: (name: string) => void): Promise<MasterKey[]> {
  const { defaultName, oldNames } = masters;
  const found: MasterKey[] = [];
  for (const name of defaultName === undefined ? oldNames : [defaultName, ...oldNames]) {
    const key = await masters.resolve(name).catch(() => onMissing(name));
    if (key !== undefined) found.push(key);
  }
  return found;
}

/** The current name of a key: data under an old key belongs to the server's current one. */
export function presentName({ defaultName, oldNames }: MasterKeys, name: string): string {
  return defaultName !== undefined && oldNames.includes(name) ? defaultName : name;
}
