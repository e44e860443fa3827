import { SandboxerError } from "@sandboxer/protocol";
import type { HeldImage, ImageLibrary } from "../../../images/image-library.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import { makePrivateFolder } from "../../../support/private-folder.ts";
import { checkImagePlace, type ImagePlaces } from "../../image-place.ts";
import { dockerRootFilesystem, isInDocker } from "./container-image.ts";
import { directoryRootFilesystem } from "./directory.ts";
import { hostRootFilesystem } from "./host.ts";
import type { RootFilesystem } from "./root-filesystem.ts";
import { tarRootFilesystem } from "./tar.ts";

type Resolver = (image: string, rest: string, cacheDirectory: string) => Promise<RootFilesystem>;

const RESOLVERS: Readonly<Record<string, Resolver>> = {
  dir: (image, path) => directoryRootFilesystem(image, path),
  tar: tarRootFilesystem,
  docker: dockerRootFilesystem,
};

export interface ImageResolverOptions extends ImagePlaces {
  readonly cacheDirectory: string;
  /** Images from registries; absent: there are none. */
  readonly library?: ImageLibrary | undefined;
}

const PATH_SCHEMES = new Set(["dir", "tar"]);

/** One image has many names (`dir:/a`, `dir:/a/.`), and requests choose them. */
const KEPT_NAMES = 256;

/**
 * Images by name. Each is prepared once while its name is among the most recently used. Those from registries are kept
 * by the {@link ImageLibrary}.
 */
export class ImageResolver {
  readonly #options: ImageResolverOptions;
  /** The most recently used name is last. */
  readonly #prepared = new Map<string, Promise<RootFilesystem>>();

  constructor(options: ImageResolverOptions) {
    this.#options = options;
  }

  /** The caller releases it. */
  resolve(image: string, options: CallOptions = {}): Promise<RootFilesystem> {
    const scheme = schemeOf(image);
    if (scheme === undefined) return this.#fromRegistry(image, options);
    if (scheme === "docker") return this.#fromDocker(image, options);
    if (scheme === "oci") return this.#fromLayout(image, options);
    return this.#once(image);
  }

  /** Fails if an image cannot be used; a missing one is pulled. */
  async prepare(image: string, options: CallOptions): Promise<void> {
    const { library } = this.#options;
    if (library !== undefined && schemeOf(image) === undefined) await library.prepare(image, options);
    else (await this.resolve(image, options)).release?.();
  }

  /** The local engine's image comes first: it may be one that no registry has. */
  async #fromDocker(image: string, options: CallOptions): Promise<RootFilesystem> {
    const name = image.slice("docker:".length);
    const elsewhere = this.#options.library !== undefined && !(await isInDocker(name));
    return elsewhere ? this.#fromRegistry(name, options) : this.#once(image);
  }

  #once(image: string): Promise<RootFilesystem> {
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
    const scheme = schemeOf(image) ?? "";
    const rest = image.slice(scheme.length + 1);
    if (PATH_SCHEMES.has(scheme)) await checkImagePlace(image, rest, this.#options);
    return RESOLVERS[scheme]!(image, rest, cacheDirectory);
  }

  async #fromRegistry(image: string, options: CallOptions): Promise<RootFilesystem> {
    return asRootFilesystem(await this.#library(image).use(image, options));
  }

  /** `oci:PATH:TAG`; without a tag, the layout has one image. */
  async #fromLayout(image: string, options: CallOptions): Promise<RootFilesystem> {
    const [, path = "", tag] = /^oci:(.+?)(?::([^/:]*))?$/s.exec(image) ?? [];
    await checkImagePlace(image, path, this.#options);
    return asRootFilesystem(await this.#library(image).useLayout(image, path, tag, options));
  }

  #library(image: string): ImageLibrary {
    const { library } = this.#options;
    if (library !== undefined) return library;
    throw new SandboxerError(
      "bad_request",
      `The image ${JSON.stringify(image)} must be host, dir:PATH, tar:PATH or docker:NAME.`,
    );
  }
}

function asRootFilesystem({ name, digest, path, defaults, release }: HeldImage): RootFilesystem {
  const identity = { kind: "container image", digest: digest.replace(/^sha256:/, ""), parts: { digest } };
  return { image: name, path, mounts: [], identity, defaults, release };
}

/** Undefined: the name of an image in a registry, such as `python:3.12`. */
function schemeOf(image: string): string | undefined {
  if (image === "host") return "host";
  const [, scheme = ""] = /^([a-z]+):./s.exec(image) ?? [];
  return scheme === "oci" || Object.hasOwn(RESOLVERS, scheme) ? scheme : undefined;
}
