import { longCall, type LongCallOptions } from "./long-call.ts";
import type { ImageRecord, RemovedImages } from "./records.ts";
import type { Bytes, Caller, CallOptions } from "./wire/call-types.ts";
import { fromWire } from "./wire/naming.ts";

/** The container images on a server's machine. A name works wherever a digest is expected. */
export class Images {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Most recently used first. */
  async list(options: CallOptions = {}): Promise<ImageRecord[]> {
    return fromWire((await this.#client.call("listImages", {}, options)).items);
  }

  async get(image: string, options: CallOptions = {}): Promise<ImageRecord> {
    return fromWire(await this.#client.call("getImage", { params: { image } }, options));
  }

  /** Asks the registry, even if an image of this name is there. Creating a sandbox pulls a missing image by itself. */
  async pull(image: string, options: LongCallOptions = {}): Promise<ImageRecord> {
    return fromWire(await this.#client.call("pullImage", { body: { image } }, longCall(options).call));
  }

  /** Imports an archive that `docker save`, buildah or skopeo wrote; `name` overrides the name in it. */
  async import(archive: Bytes, options: CallOptions & { readonly name?: string } = {}): Promise<ImageRecord> {
    const { name, ...call } = options;
    const query = name === undefined ? {} : { name };
    return fromWire(await this.#client.call("importImage", { query, body: archive }, call));
  }

  /** Deletes a name, and with the last name the image. Fails while a running sandbox uses it. */
  async delete(image: string, options: CallOptions = {}): Promise<RemovedImages> {
    return fromWire(await this.#client.call("deleteImage", { params: { image } }, options));
  }

  /** Deletes every image that no running sandbox uses. */
  async prune(options: CallOptions = {}): Promise<RemovedImages> {
    return fromWire(await this.#client.call("pruneImages", {}, options));
  }
}
