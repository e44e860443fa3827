import type { SecretResolver } from "../secrets/secret.ts";
import { SecretSources } from "../secrets/secret-sources.ts";
import type { ServerConfig } from "./config.ts";

/** The secrets of the config file, for the manager. Nothing is read before it is needed. */
export function openSecrets(config: Pick<ServerConfig, "secrets">, warn: (message: string) => void): SecretResolver {
  return new SecretSources({ definitions: config.secrets, environment: process.env, warn });
}
