import { ImageLibrary } from "../../../src/images/image-library.ts";

/** For images of a registry on this machine, which names without a registry mean. */
export function registryLibrary(folder: string, host: string): ImageLibrary {
  const credentials = {
    secretNames: new Map(),
    secrets: { resolve: () => Promise.reject(new Error()) },
    searchPath: "",
  };
  const registries = { credentials, insecure: [host], mirrors: new Map(), allowed: [] };
  return new ImageLibrary({ folder, defaultRegistry: host, maxBytes: 1e9, registries });
}
