import { join } from "node:path";
import type { ImageLibrary } from "../images/image-library.ts";
import type { SecretResolver } from "../secrets/secret.ts";
import type { ServerConfig } from "./config.ts";

const MIB = 1024 * 1024;

/** The container images of this machine. Nothing is read or created before the first one is needed. */
export async function openImages(
  config: ServerConfig,
  secrets: SecretResolver,
  onProblem: (message: string, error: unknown) => void,
): Promise<ImageLibrary> {
  const { ImageLibrary: Library } = await import("../images/image-library.ts");
  const secretNames = new Map([...config.registrySecrets].map(([host, [name = ""]]) => [host, name]));
  const { dockerConfig, searchPath, httpProxy, httpsProxy, noProxy } = config;
  return new Library({
    folder: join(config.cacheDirectory, "images"),
    registries: {
      credentials: { dockerConfig, secretNames, secrets, searchPath },
      proxies: { http: httpProxy, https: httpsProxy, none: noProxy },
      insecure: config.insecureRegistries,
      mirrors: config.registryMirrors,
      allowed: config.registries,
    },
    defaultRegistry: config.defaultRegistry,
    maxBytes: config.layerCacheMb * MIB,
    limits: { unpackedBytes: config.maxImageMb * MIB },
    onProblem,
  });
}
