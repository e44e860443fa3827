import type { CallOptions } from "../support/call-options.ts";
import type { ImageReference } from "./image-reference.ts";
import { lie, type RegistryClient } from "./registry/registry-client.ts";
import { downloadBlob } from "./registry/download-blob.ts";
import { readManifest, type Descriptor, type Manifest, type Platform } from "./manifest.ts";
import type { ImageLimits } from "./image-limits.ts";

export interface LayerWish {
  readonly blob: Descriptor;
  /** Where to put it. */
  readonly path: string;
  readonly signal?: AbortSignal | undefined;
  readonly onBytes?: (bytes: number) => void;
}

/** Where the parts of one image come from. Everything is checked against its digest. */
export interface ImageSource {
  /** The manifest of this platform, its digest, and the digests that lead to it: of an index. */
  manifest(options: CallOptions): Promise<FoundManifest>;
  document(blob: Descriptor, options: CallOptions): Promise<Buffer>;
  layer(wish: LayerWish): Promise<void>;
}

export interface FoundManifest {
  readonly manifest: Manifest;
  readonly digest: string;
  /** The digest of the index that was asked for; undefined: there was none. */
  readonly indexDigest: string | undefined;
}

/** Reads a manifest, or an index and then the manifest in it. */
export async function followManifest(
  name: string,
  first: string,
  read: (wanted: string) => Promise<{ readonly bytes: Buffer; readonly digest: string }>,
  limits: ImageLimits,
  platform: Platform,
): Promise<FoundManifest | undefined> {
  const top = await read(first);
  const found = readManifest(name, top.bytes, limits, platform);
  if ("layers" in found) return { manifest: found, digest: top.digest, indexDigest: undefined };
  const inner = await read(found.digest);
  const manifest = readManifest(name, inner.bytes, limits, platform);
  return "layers" in manifest ? { manifest, digest: inner.digest, indexDigest: top.digest } : undefined;
}

export class RegistrySource implements ImageSource {
  readonly #client: RegistryClient;
  readonly #reference: ImageReference;
  readonly #limits: ImageLimits;
  readonly #platform: Platform;

  constructor(client: RegistryClient, reference: ImageReference, limits: ImageLimits, platform: Platform) {
    this.#client = client;
    this.#reference = reference;
    this.#limits = limits;
    this.#platform = platform;
  }

  async manifest(options: CallOptions): Promise<FoundManifest> {
    const { repository, digest, tag = "latest" } = this.#reference;
    const read = (wanted: string): Promise<{ bytes: Buffer; digest: string }> =>
      this.#client.manifest(this.#reference, wanted, this.#limits.documentBytes, options);
    const found = await followManifest(repository, digest ?? tag, read, this.#limits, this.#platform);
    if (found === undefined) throw lie(this.#reference, "its index leads to another index");
    return found;
  }

  document(blob: Descriptor, options: CallOptions): Promise<Buffer> {
    return this.#client.document(this.#reference, blob, this.#limits.documentBytes, options);
  }

  layer(wish: LayerWish): Promise<void> {
    return downloadBlob(this.#client, { reference: this.#reference, ...wish });
  }
}
