import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { pipeline } from "node:stream/promises";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import { checkImagePlace, type ImagePlaces } from "../image-place.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";

/** The repository of images imported from archives; their tags are digests. */
const IMPORTED = "sandboxer-import";
/** https://github.com/distribution/reference, without what no registry has in practice. */
const IMAGE_NAME = /^[a-z0-9][a-z0-9.-]*(:\d+)?([._/-]+[a-z0-9]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/i;
const IMAGE_ID = /^(sha256:)?[0-9a-f]{12,64}$/;

/** Images by name: those that the engine has, pulls from a registry, or imports from an archive. */
export class DockerImages {
  readonly #engine: DockerEngine;
  readonly #places: ImagePlaces;
  readonly #importing = new Map<string, Promise<string>>();

  constructor(engine: DockerEngine, places: ImagePlaces) {
    this.#engine = engine;
    this.#places = places;
  }

  /** The id of an image, which is pulled or imported if it is missing. */
  async resolve(image: string, options: CallOptions = {}): Promise<string> {
    const path = /^tar:(.+)$/s.exec(image)?.[1];
    if (path !== undefined) return this.#imported(image, path, options);
    const name = imageName(image);
    const present = (await this.#engine.image(name)) ?? (await this.#pulled(image, name, options));
    return present.Id;
  }

  /** Checks without pulling. */
  async isPresent(image: string): Promise<boolean> {
    if (image.startsWith("tar:")) return (await stat(image.slice("tar:".length)).catch(() => undefined)) !== undefined;
    return (await this.#engine.image(imageName(image))) !== undefined;
  }

  async #pulled(image: string, name: string, options: CallOptions): Promise<{ readonly Id: string }> {
    options.onProgress?.({ phase: "getting the image" });
    try {
      await this.#engine.pull(name, options);
    } catch (cause) {
      if (options.signal?.aborted === true) throw cause;
      const reason = asSandboxerError(cause);
      if (reason.code === "no_space") throw reason;
      throw new SandboxerError(
        "bad_request",
        `The engine does not have the image ${image} and cannot pull it: ${reason.message}`,
        {
          cause,
          hint: `Check the name. Without a registry: docker pull ${name} where there is one, then docker save and docker load, or use a tar: image.`,
        },
      );
    }
    const pulled = await this.#engine.image(name);
    if (pulled === undefined) throw new SandboxerError("bad_request", `The engine has no image ${image}.`);
    return pulled;
  }

  async #imported(image: string, path: string, options: CallOptions): Promise<string> {
    if (!isAbsolute(path)) throw new SandboxerError("bad_request", `The image ${image} needs an absolute path.`);
    await checkImagePlace(image, path, this.#places);
    const info = await stat(path).catch(() => undefined);
    if (info === undefined || !info.isFile()) {
      throw new SandboxerError("bad_request", `The image ${image} does not name a file on the server.`);
    }
    const version = `${path}\0${info.size}\0${info.mtimeMs}`;
    const importing = this.#importing.get(version) ?? this.#import(path, options);
    this.#importing.set(version, importing);
    try {
      const id = await importing;
      // Someone may have removed it since.
      if ((await this.#engine.image(id)) !== undefined) return id;
      return await this.#import(path, options);
    } catch (error) {
      this.#importing.delete(version);
      throw error;
    }
  }

  async #import(path: string, options: CallOptions): Promise<string> {
    const hash = createHash("sha256");
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
    const tag = hash.digest("hex").slice(0, 32);
    const name = `${IMPORTED}:${tag}`;
    const present = await this.#engine.image(name);
    if (present !== undefined) return present.Id;
    options.onProgress?.({ phase: "importing the image" });
    await this.#engine.importImage(IMPORTED, tag, createReadStream(path), options);
    const imported = await this.#engine.image(name);
    if (imported === undefined) throw new SandboxerError("internal", `The image ${name} was imported but is missing.`);
    return imported.Id;
  }
}

function imageName(image: string): string {
  const name = image.replace(/^docker:/, "");
  const known = image.startsWith("docker:") || !/^(host|(dir|oci):.*)$/s.test(image);
  if (known && (IMAGE_NAME.test(name) || IMAGE_ID.test(name))) return name;
  throw new SandboxerError("bad_request", `The image ${JSON.stringify(image)} cannot be used with Docker.`, {
    hint: "Use the name of a Docker image, such as docker:debian:13, or tar:PATH.",
  });
}
