import { SandboxerError } from "@sandboxer/protocol";
import { makePrivateFolder } from "../../../support/private-folder.ts";
import { checkImagePlace, type ImagePlaces } from "../../image-place.ts";
import { dockerRootFilesystem, ociRootFilesystem } from "./container-image.ts";
import { directoryRootFilesystem } from "./directory.ts";
import { hostRootFilesystem } from "./host.ts";
import type { RootFilesystem } from "./root-filesystem.ts";
import { tarRootFilesystem } from "./tar.ts";

type Resolver = (image: string, rest: string, cacheDirectory: string) => Promise<RootFilesystem>;

const RESOLVERS: Readonly<Record<string, Resolver>> = {
  dir: (image, path) => directoryRootFilesystem(image, path),
  tar: tarRootFilesystem,
  docker: dockerRootFilesystem,
  oci: ociRootFilesystem,
};

export interface ImageResolverOptions extends ImagePlaces {
  readonly cacheDirectory: string;
}

const PATH_SCHEMES = new Set(["dir", "tar", "oci"]);

/** One image has many names (`dir:/a`, `dir:/a/.`), and requests choose them. */
const KEPT_NAMES = 256;

/** Images by name. Each is prepared once while its name is among the most recently used. */
export class ImageResolver {
  readonly #options: ImageResolverOptions;
  /** The most recently used name is last. */
  readonly #prepared = new Map<string, Promise<RootFilesystem>>();

  constructor(options: ImageResolverOptions) {
    this.#options = options;
  }

  resolve(image: string): Promise<RootFilesystem> {
    const known = this.#prepared.get(image);
    this.#prepared.delete(image);
    const preparing = known ?? this.#prepare(image);
    this.#prepared.set(image, preparing);
    const [oldest] = this.#prepared.keys();
    if (this.#prepared.size > KEPT_NAMES && oldest !== undefined) this.#prepared.delete(oldest);
    // A failure is not cached: the next attempt may succeed.
    if (known === undefined) preparing.catch(() => this.#forget(image, preparing));
    return preparing;
  }

  #forget(image: string, failed: Promise<RootFilesystem>): void {
    if (this.#prepared.get(image) === failed) this.#prepared.delete(image);
  }

  async #prepare(image: string): Promise<RootFilesystem> {
    const { cacheDirectory } = this.#options;
    // Unpacked images may have setuid root programs.
    await makePrivateFolder(cacheDirectory);
    if (image === "host") return hostRootFilesystem(cacheDirectory);
    const [, scheme = "", rest = ""] = /^([a-z]+):(.+)$/s.exec(image) ?? [];
    const resolver = Object.hasOwn(RESOLVERS, scheme) ? RESOLVERS[scheme] : undefined;
    if (resolver === undefined) {
      throw new SandboxerError(
        "bad_request",
        `The image ${JSON.stringify(image)} must be host, dir:PATH, tar:PATH, docker:NAME or oci:PATH:TAG.`,
      );
    }
    if (PATH_SCHEMES.has(scheme)) {
      await checkImagePlace(image, scheme === "oci" ? rest.replace(/:[^/]*$/, "") : rest, this.#options);
    }
    return resolver(image, rest, cacheDirectory);
  }
}
