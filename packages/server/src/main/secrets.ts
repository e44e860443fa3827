import { SandboxerError } from "@sandboxer/protocol";
import type { SecretResolver } from "../secrets/secret.ts";
import { SecretSources } from "../secrets/secret-sources.ts";
import type { ServerConfig } from "./config.ts";
import { DAYTONA_API_KEY_SECRET } from "./config-schema.ts";

/**
 * The secrets of the config file, and the keys of backends that came as settings; the file's definition of a name
 * counts. Nothing of the file is read before it is needed.
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
        hint: `Start it with DAYTONA_API_KEY in its environment, or say where ${name} comes from under "secrets" in its config file.`,
        details: { secret: name },
      });
    },
  };
}
