import { arch } from "node:os";
import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../support/call-options.ts";
import { Places } from "../support/places.ts";
import { makePrivateFolder } from "../support/private-folder.ts";
import { collectImages, type Collected } from "./collect-images.ts";
import { exists, fetchImage } from "./fetch-image.ts";
import { Holders } from "./holders.ts";
import { ImageFolders } from "./image-folders.ts";
import { openLayout, withArchive } from "./import-archive.ts";
import { ImageIndex, type ImageEntry } from "./image-index.ts";
import { DEFAULT_LIMITS, type ImageLimits } from "./image-limits.ts";
import { fullName, parseReference, pinnedName, taggedName, type ImageReference } from "./image-reference.ts";
import { RegistrySource, type FoundManifest, type ImageSource } from "./image-source.ts";
import { readConfig, thisPlatform, type ImageDefaults } from "./manifest.ts";
import { RegistryClient, type RegistryOptions } from "./registry/registry-client.ts";
import { SharedPull } from "./shared-pull.ts";

export interface ImageLibraryOptions {
  /** Shared by the servers of this machine. */
  readonly folder: string;
  readonly registries: RegistryOptions;
  /** The registry of names without one. */
  readonly defaultRegistry: string;
  /** The limit for all unpacked layers; above it, the least recently used images that nobody uses are removed. */
  readonly maxBytes: number;
  readonly limits?: Partial<ImageLimits>;
  /** Background work failed. */
  readonly onProblem?: (message: string, error: unknown) => void;
}

/** An image that is not removed until it is released. */
export interface HeldImage {
  /** The name that leads to this content on every server. */
  readonly name: string;
  readonly digest: string;
  readonly path: string;
  readonly defaults: ImageDefaults;
  /** Idempotent. */
  readonly release: () => void;
}

export interface StoredImage extends ImageEntry {
  readonly digest: string;
  readonly inUse: boolean;
}

const ATTEMPTS = 3;
const LAYERS_AT_ONCE = 6;

/** The container images of this machine: pulled from registries, kept in layers, stacked to root filesystems. */
export class ImageLibrary {
  readonly #options: ImageLibraryOptions;
  readonly #limits: ImageLimits;
  readonly #folders: ImageFolders;
  readonly #index: ImageIndex;
  readonly #holders: Holders;
  readonly #client: RegistryClient;
  /** By name: pulls in progress. */
  readonly #pulls = new Map<string, SharedPull<string>>();
  /** By digest: how many hold it here. */
  readonly #holds = new Map<string, number>();
  /** For layers, whatever their image. */
  readonly #places = new Places(LAYERS_AT_ONCE);
  /** Changes of the index that nobody waits for. */
  readonly #background = new Set<Promise<unknown>>();

  constructor(options: ImageLibraryOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#folders = new ImageFolders(options.folder);
    this.#index = new ImageIndex(options.folder);
    this.#holders = new Holders(options.folder);
    this.#client = new RegistryClient(options.registries);
  }

  /** The image for a sandbox: the one that is here, or else pulled. A tag that has moved since does not matter. */
  async use(name: string, options: CallOptions = {}): Promise<HeldImage> {
    const reference = this.#parse(name);
    const present = await this.#find(reference);
    const kept = present === undefined ? undefined : await this.#hold(present);
    if (kept !== undefined) return kept;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const held = await this.#hold(await this.#pullOnce(reference, options));
      // Otherwise another process has removed it in between.
      if (held === undefined) continue;
      this.#makeRoom();
      return held;
    }
    throw new SandboxerError("backend_unavailable", `The image ${name} is removed as soon as it is pulled.`, {
      hint: "Raise --layer-cache-mb on the servers of this machine.",
    });
  }

  /** An image of an OCI layout on this machine, under the name `image`. */
  async useLayout(
    image: string,
    folder: string,
    tag: string | undefined,
    options: CallOptions = {},
  ): Promise<HeldImage> {
    const source = await openLayout(folder, tag, this.#limits);
    const { digest } = await source.manifest();
    const origin = { name: image, repository: image, names: () => [] };
    const held = (await this.#hold(digest)) ?? (await this.#hold(await this.#fetch(origin, source, options)));
    if (held !== undefined) return { ...held, name: image };
    throw new SandboxerError("backend_unavailable", `The image ${image} is removed as soon as it is unpacked.`);
  }

  /** Makes sure that an image is here, without holding it. */
  async prepare(name: string, options: CallOptions = {}): Promise<void> {
    const present = await this.#find(this.#parse(name));
    if (present === undefined || !(await exists(this.#folders.root(present))))
      (await this.use(name, options)).release();
  }

  /** Whether the image is here, without asking a registry. */
  async has(name: string): Promise<boolean> {
    return (await this.#find(this.#parse(name))) !== undefined;
  }

  /** Asks the registry, even if an image of this name is here. */
  async pull(name: string, options: CallOptions = {}): Promise<StoredImage> {
    return this.#added(await this.#pullOnce(this.#parse(name), options));
  }

  /** From an archive of `docker save`, or of an OCI layout; under this name, or those in it. */
  async importArchive(
    archive: AsyncIterable<Uint8Array>,
    name: string | undefined,
    options: CallOptions = {},
  ): Promise<StoredImage> {
    // An invalid name fails before anything is read.
    if (name !== undefined) this.#parse(name);
    await makePrivateFolder(this.#folders.top);
    return withArchive(archive, this.#folders.imports, this.#limits, async (source) => {
      const [first, ...others] = name === undefined ? source.names : [name];
      if (first === undefined) {
        throw new SandboxerError("bad_request", "The archive has no name for its image.", {
          hint: "Give it one: --name NAME.",
        });
      }
      const origin = originOf(
        this.#parse(first),
        others.map((each) => fullName(this.#parse(each))),
      );
      return this.#added(await this.#fetch(origin, source, options));
    });
  }

  /** Most recently used first. */
  async list(): Promise<StoredImage[]> {
    const [images, living] = [await this.#index.read(), await this.#holders.living()];
    return [...images]
      .filter(([, { ready }]) => ready)
      .map(([digest, entry]) => ({ ...entry, digest, inUse: entry.held_by.some((id) => living.has(id)) }))
      .toSorted((a, b) => b.last_used_at.localeCompare(a.last_used_at));
  }

  /** By digest, its first digits, or name. */
  async get(wanted: string): Promise<StoredImage> {
    const images = await this.list();
    const found =
      images.find(({ digest }) => digest === wanted) ?? this.#byName(images, wanted) ?? byDigits(images, wanted);
    if (found !== undefined) return found;
    throw new SandboxerError("image_not_found", `This server has no image ${wanted}.`, {
      hint: "List the images with `sandboxer images ls`.",
    });
  }

  /** Removes a name of an image; without its last name, the image itself. By digest: all of it. */
  async remove(wanted: string): Promise<Collected> {
    const { digest, names } = await this.get(wanted);
    const name = this.#nameIn(names, wanted);
    const living = await this.#holders.living();
    const deleted = await this.#index.change((images) => {
      const entry = images.get(digest);
      if (entry === undefined) return [];
      if (name !== undefined && entry.names.length > 1) {
        images.set(digest, { ...entry, names: entry.names.filter((each) => each !== name) });
        return [];
      }
      if (entry.held_by.some((id) => living.has(id))) return undefined;
      images.delete(digest);
      return [digest];
    });
    if (deleted === undefined) {
      throw new SandboxerError("image_in_use", `A running sandbox uses the image ${wanted}.`);
    }
    const { removed, freedBytes } = await this.#collect(Infinity);
    return { removed: [...deleted, ...removed], freedBytes };
  }

  /** Removes every image that nobody uses. */
  prune(): Promise<Collected> {
    return this.#collect(0);
  }

  async close(): Promise<void> {
    this.#client.close();
    await Promise.allSettled(this.#background);
    await this.#holders.close();
  }

  #parse(name: string): ImageReference {
    return parseReference(name, this.#options.defaultRegistry);
  }

  #byName(images: readonly StoredImage[], wanted: string): StoredImage | undefined {
    return images.find(({ names }) => this.#nameIn(names, wanted) !== undefined);
  }

  #nameIn(names: readonly string[], wanted: string): string | undefined {
    try {
      const full = fullName(this.#parse(wanted));
      return names.find((name) => name === full);
    } catch {
      return undefined;
    }
  }

  async #find(reference: ImageReference): Promise<string | undefined> {
    const images = await this.#index.read();
    const { digest } = reference;
    if (digest !== undefined && images.get(digest)?.ready === true) return digest;
    const name = fullName(reference);
    return [...images].find(([, { names, ready }]) => ready && names.includes(name))?.[0];
  }

  async #pullOnce(reference: ImageReference, options: CallOptions): Promise<string> {
    const name = fullName(reference);
    const running = this.#pulls.get(name);
    if (running !== undefined && !running.abandoned) return running.join(options);
    const source = new RegistrySource(this.#client, reference, this.#limits, thisPlatform(arch()));
    const pull = new SharedPull((shared) => this.#fetch(originOf(reference), source, shared));
    this.#pulls.set(name, pull);
    try {
      return await pull.join(options);
    } finally {
      if (this.#pulls.get(name) === pull) this.#pulls.delete(name);
    }
  }

  async #fetch({ name, repository, names }: ImageOrigin, source: ImageSource, options: CallOptions): Promise<string> {
    await makePrivateFolder(this.#folders.top);
    options.onProgress?.({ phase: "pulling image" });
    const found = await source.manifest(options);
    const { manifest, digest } = found;
    const config = readConfig(name, await source.document(manifest.config, options), manifest, this.#limits);
    const now = new Date().toISOString();
    // From here on its layers are needed.
    const release = await this.#registerHold(digest, (entry) => ({
      names: [],
      ready: false,
      bytes: 0,
      pulled_at: now,
      last_used_at: now,
      held_by: [],
      ...entry,
      repository,
      diff_ids: [...config.diffIds],
      defaults: config.defaults,
    }));
    try {
      const bytes = await fetchImage(
        { name, digest, manifest, config, places: this.#places },
        source,
        this.#folders,
        this.#limits,
        options,
      );
      await this.#index.change((images) => publish(images, digest, { bytes, names: names(found), now }));
    } finally {
      release();
    }
    return digest;
  }

  /** Undefined: it is not here. */
  async #hold(digest: string): Promise<HeldImage | undefined> {
    let entry: ImageEntry | undefined;
    const release = await this.#registerHold(
      digest,
      (present) => (entry = present?.ready === true ? present : undefined),
    );
    const path = this.#folders.root(digest);
    if (entry === undefined || !(await exists(path))) {
      release();
      return undefined;
    }
    const { repository, defaults } = entry;
    return { name: `${repository}@${digest}`, digest, path, defaults, release };
  }

  /** Notes in the index that this process needs the image. Returns what ends that. */
  async #registerHold(
    digest: string,
    change: (entry: ImageEntry | undefined) => ImageEntry | undefined,
  ): Promise<() => void> {
    await this.#holders.begin();
    const others = this.#holds.get(digest) ?? 0;
    this.#holds.set(digest, others + 1);
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      const left = (this.#holds.get(digest) ?? 1) - 1;
      if (left > 0) this.#holds.set(digest, left);
      else {
        this.#holds.delete(digest);
        this.#inBackground("the release of an image", this.#unregister(digest));
      }
    };
    try {
      const known = others === 0 ? undefined : (await this.#index.read()).get(digest);
      // Most uses of an image write nothing.
      if (known?.held_by.includes(this.#holders.id) === true && change(known) === known) return release;
      await this.#index.change((images) => {
        const entry = change(images.get(digest));
        if (entry === undefined) return;
        images.set(digest, { ...entry, held_by: [...new Set([...entry.held_by, this.#holders.id])] });
      });
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  async #unregister(digest: string): Promise<void> {
    await this.#index.change((images) => {
      const entry = images.get(digest);
      // It may be held again.
      if (entry === undefined || this.#holds.has(digest)) return;
      const heldBy = entry.held_by.filter((id) => id !== this.#holders.id);
      if (!entry.ready && heldBy.length === 0) images.delete(digest);
      else images.set(digest, { ...entry, held_by: heldBy, last_used_at: new Date().toISOString() });
    });
  }

  async #added(digest: string): Promise<StoredImage> {
    // The pull itself does not count as a use.
    await Promise.all(this.#background);
    const image = await this.get(digest);
    this.#makeRoom();
    return image;
  }

  #makeRoom(): void {
    this.#inBackground("the removal of unused images", this.#collect(this.#options.maxBytes));
  }

  #collect(maxBytes: number): Promise<Collected> {
    return collectImages(this.#index, this.#folders, this.#holders, maxBytes);
  }

  #inBackground(what: string, work: Promise<unknown>): void {
    const watched = work
      .catch((error: unknown) => this.#options.onProblem?.(`${what} failed`, error))
      .finally(() => this.#background.delete(watched));
    this.#background.add(watched);
  }
}

/** Where an image comes from. */
interface ImageOrigin {
  /** For messages. */
  readonly name: string;
  /** See {@link ImageEntry}. */
  readonly repository: string;
  /** The names by which it is found again. */
  readonly names: (found: FoundManifest) => readonly string[];
}

function originOf(reference: ImageReference, others: readonly string[] = []): ImageOrigin {
  return {
    name: fullName(reference),
    repository: `${reference.registry}/${reference.repository}`,
    names: (found) => [...namesOf(reference, found), ...others],
  };
}

function namesOf(reference: ImageReference, { indexDigest }: FoundManifest): string[] {
  const tagged = reference.digest === undefined ? taggedName(reference) : undefined;
  const ofIndex =
    reference.digest === indexDigest && indexDigest !== undefined ? pinnedName(reference, indexDigest) : undefined;
  return [tagged, ofIndex].filter((name) => name !== undefined);
}

/** The image is complete. A name belongs to one image. */
function publish(
  images: Map<string, ImageEntry>,
  digest: string,
  { bytes, names, now }: { readonly bytes: number; readonly names: readonly string[]; readonly now: string },
): void {
  for (const [other, entry] of images) {
    if (entry.names.some((name) => names.includes(name))) {
      images.set(other, { ...entry, names: entry.names.filter((name) => !names.includes(name)) });
    }
  }
  const entry = images.get(digest);
  if (entry === undefined) return;
  const all = [...new Set([...entry.names, ...names])];
  images.set(digest, { ...entry, bytes, names: all, ready: true, pulled_at: now, last_used_at: now });
}

function byDigits(images: readonly StoredImage[], wanted: string): StoredImage | undefined {
  const digits = wanted.replace(/^sha256:/, "");
  if (!/^[0-9a-f]{6,64}$/.test(digits)) return undefined;
  const found = images.filter(({ digest }) => digest.startsWith(`sha256:${digits}`));
  return found.length === 1 ? found[0] : undefined;
}
