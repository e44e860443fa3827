import { SandboxerError } from "@sandboxer/protocol";
import { keyFilePath } from "../gateway/access/key-file.ts";
import { readKeyFile } from "../gateway/access/key-records.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import { SecretSources } from "../secrets/secret-sources.ts";
import type { ServerConfig } from "./config.ts";
import { DAYTONA_API_KEY_SECRET } from "./config-schema.ts";

/**
 * The secrets of the config file, and the keys of backends that came as settings; the file's definition of a name takes
 * precedence. Nothing is read before it is needed.
 */
export function openSecrets(
  config: Pick<ServerConfig, "secrets" | "daytonaApiKey">,
  warn: (message: string) => void,
): SecretResolver {
  const sources = new SecretSources({ definitions: config.secrets, environment: process.env, warn });
  const { daytonaApiKey } = config;
  if (Object.hasOwn(config.secrets, DAYTONA_API_KEY_SECRET)) return sources;
  return {
    resolve: async (name, options) => {
      if (name !== DAYTONA_API_KEY_SECRET) return sources.resolve(name, options);
      if (daytonaApiKey !== undefined) return daytonaApiKey;
      throw new SandboxerError("secret_unavailable", "This server has no key for Daytona.", {
        hint: `Set DAYTONA_API_KEY in the server's environment, or define ${name} under "secrets" in its config file.`,
        details: { secret: name },
      });
    },
  };
}

/** The secrets that sandboxes may use: never an encryption key of saved states. */
export function secretsForSandboxes(
  config: Pick<ServerConfig, "encryptionKey" | "encryptionOldKeys" | "dataDirectory">,
  secrets: SecretResolver,
): SecretResolver {
  return {
    resolve: async (name, options) => {
      const ofCallers = readKeyFile(keyFilePath(config.dataDirectory)).keys.map((key) => key.encryption_key);
      if (![config.encryptionKey, ...config.encryptionOldKeys, ...ofCallers].includes(name)) {
        return await secrets.resolve(name, options);
      }
      throw new SandboxerError("secret_unavailable", `The secret ${name} is an encryption key of this server.`, {
        hint: "Sandboxes cannot use it. Use another secret in the profile's secret_refs.",
        details: { secret: name },
      });
    },
  };
}
