import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import { keyUnavailable } from "../checkpoints/keys/key-errors.ts";
import { MasterKey } from "../checkpoints/keys/master-key.ts";
import type { MasterKeys } from "../checkpoints/keys/master-keys.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { ServerConfig } from "./config.ts";

type EncryptionConfig = Pick<ServerConfig, "encryptionKey" | "encryptionOldKeys">;

/** The master keys of a server: secrets, which are read when they are needed, and kept nowhere. */
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

/** A server that is to encrypt and cannot must not start. */
export async function checkEncryption(
  { encryptionKey }: Pick<ServerConfig, "encryptionKey">,
  masters: MasterKeys,
): Promise<void> {
  if (encryptionKey !== undefined) await masters.resolve(encryptionKey);
}
