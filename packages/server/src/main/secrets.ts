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
  if (daytonaApiKey === undefined || Object.hasOwn(config.secrets, DAYTONA_API_KEY_SECRET)) return sources;
  return {
    resolve: (name, options) =>
      name === DAYTONA_API_KEY_SECRET ? Promise.resolve(daytonaApiKey) : sources.resolve(name, options),
  };
}
