import type { ImageRecord, RemovedImages } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol";
import type { Collected } from "../../images/collect-images.ts";
import type { ImageLibrary, StoredImage } from "../../images/image-library.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ManagerContext } from "../context.ts";
import type { VerbOptions } from "./operations/tracked.ts";
import { Room } from "../room.ts";

/** The container images on this machine. */
export class ImageVerbs extends Room<ManagerContext> {
  async list(): Promise<ImageRecord[]> {
    return (await this.#library.list()).map(recordOf);
  }

  async get(image: string): Promise<ImageRecord> {
    return recordOf(await this.#library.get(image));
  }

  async pull(image: string, options: VerbOptions = {}): Promise<ImageRecord> {
    return recordOf(await this.#library.pull(image, callOptions(options)));
  }

  async import(
    archive: AsyncIterable<Uint8Array>,
    name: string | undefined,
    options: VerbOptions = {},
  ): Promise<ImageRecord> {
    return recordOf(await this.#library.importArchive(archive, name, callOptions(options)));
  }

  async remove(image: string): Promise<RemovedImages> {
    return removedOf(await this.#library.remove(image));
  }

  async prune(): Promise<RemovedImages> {
    return removedOf(await this.#library.prune());
  }

  get #library(): ImageLibrary {
    const { images, defaultBackend } = this.context.options;
    if (images !== undefined) return images;
    throw new SandboxerError("not_supported", `The backend ${defaultBackend} keeps its images itself.`, {
      hint: "Use the tools of its provider, such as `docker images`.",
    });
  }
}

function callOptions({ operation, signal }: VerbOptions): CallOptions {
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(operation === undefined ? {} : { onProgress: operation.onProgress }),
  };
}

function removedOf({ removed, freedBytes }: Collected): RemovedImages {
  return { removed: [...removed], freed_bytes: freedBytes };
}

function recordOf(image: StoredImage): ImageRecord {
  const { env, user, workingFolder, entrypoint, command } = image.defaults;
  return {
    digest: image.digest,
    names: image.names,
    size_bytes: image.bytes,
    layers: image.diff_ids.length,
    pulled_at: image.pulled_at,
    last_used_at: image.last_used_at,
    in_use: image.inUse,
    environment: env,
    user: user ?? null,
    working_folder: workingFolder ?? null,
    entrypoint: entrypoint ?? null,
    command: command ?? null,
  };
}
