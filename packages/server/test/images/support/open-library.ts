import { onTestFinished } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { ImageLibrary, type ImageLibraryOptions } from "../../../src/images/image-library.ts";
import type { RegistryOptions } from "../../../src/images/registry/registry-client.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import type { FakeRegistry } from "./fake-registry.ts";

export type LibraryWishes = Partial<Omit<ImageLibraryOptions, "registries">> & {
  readonly registries?: Partial<RegistryOptions>;
};

/** A library that knows a registry of the test. */
export async function openLibrary(registry: FakeRegistry, wishes: LibraryWishes = {}): Promise<ImageLibrary> {
  const { registries, ...others } = wishes;
  const library = new ImageLibrary({
    folder: await temporaryFolder(),
    defaultRegistry: registry.host,
    maxBytes: 1024 * 1024 * 1024,
    registries: {
      credentials: {
        secretNames: new Map(),
        secrets: { resolve: async (name) => new Secret(name, "robot:hunter2") },
        searchPath: "/usr/bin:/bin",
      },
      insecure: [registry.host],
      mirrors: new Map(),
      allowed: [],
      ...registries,
    },
    ...others,
  });
  onTestFinished(() => library.close());
  return library;
}
