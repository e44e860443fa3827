import { keyUnavailable } from "./key-errors.ts";
import type { MasterKey } from "./master-key.ts";

/** The master keys that a server has, by the names of the secrets that hold them. */
export interface MasterKeys {
  /** What is saved without a key of its own is under this one; undefined: it is not encrypted. */
  readonly defaultName: string | undefined;
  /** Before the present ones: what is under them can be read. */
  readonly oldNames: readonly string[];
  /** Reads it from where it comes from, each time. `key_unavailable` names the secret and never the value. */
  resolve(name: string): Promise<MasterKey>;
}

export const NO_MASTER_KEYS: MasterKeys = {
  defaultName: undefined,
  oldNames: [],
  resolve: async (name) => {
    throw keyUnavailable(`This server has no encryption key "${name}".`, { key: name });
  },
};

/** The name under which a key goes on: what was under an old key belongs to the server's present one. */
export function presentName({ defaultName, oldNames }: MasterKeys, name: string): string {
  return defaultName !== undefined && oldNames.includes(name) ? defaultName : name;
}
