import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import { keyUnavailable } from "../checkpoints/keys/key-errors.ts";
import { MasterKey } from "../checkpoints/keys/master-key.ts";
import { readableKeys, type MasterKeys } from "../checkpoints/keys/master-keys.ts";
import { RecordSeals } from "../seals/record-seals.ts";
import { withSeals } from "../seals/sealed-store.ts";
import type { ObjectStore } from "../store/store.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { ServerConfig } from "./config.ts";

type EncryptionConfig = Pick<ServerConfig, "encryptionKey" | "encryptionOldKeys">;

/** The master keys of a server: secrets that are read when needed, and not stored. */
export function masterKeysOf(
  { encryptionKey, encryptionOldKeys }: EncryptionConfig,
  secrets: SecretResolver,
): MasterKeys {
  return {
    defaultName: encryptionKey,
    oldNames: encryptionOldKeys,
    resolve: async (name) => {
      const secret = await secrets.resolve(name).catch((error: unknown) => {
        const { message, hint } = asSandboxerError(error);
        throw new SandboxerError("key_unavailable", message, { hint, details: { key: name } });
      });
      const key = MasterKey.parse(secret.reveal());
      if (key !== undefined) return key;
      throw keyUnavailable(`The secret ${name} is not a key: that is 32 bytes, in base64 or hex.`, { key: name });
    },
  };
}

interface SealedStore {
  readonly store: ObjectStore;
  readonly seals: RecordSeals | undefined;
  /** The server's encryption keys, the current one first. */
  readonly keys: readonly MasterKey[];
}

/** Wraps a store so that its records are sealed, if there is a key. Throws if seals are required and there is none. */
export async function sealedStore(
  store: ObjectStore,
  { requireSealed: required }: Pick<ServerConfig, "requireSealed">,
  masters: MasterKeys,
  warn: (message: string) => void,
): Promise<SealedStore> {
  const keys = await readableKeys(masters, (name) => warn(`The encryption key ${name} cannot be read.`));
  const seals = RecordSeals.with(keys);
  if (required && seals === undefined) {
    throw new SandboxerError("bad_request", "--require-sealed needs an encryption key.", {
      hint: "Set it with --encryption-key; records are sealed with it.",
    });
  }
  return { store: withSeals(store, { seals, required }), seals, keys };
}

/** A server that must encrypt and cannot must not start. */
export async function checkEncryption(
  { encryptionKey }: Pick<ServerConfig, "encryptionKey">,
  masters: MasterKeys,
): Promise<void> {
  if (encryptionKey !== undefined) await masters.resolve(encryptionKey);
}
