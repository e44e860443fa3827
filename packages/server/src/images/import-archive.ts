import { createHash, randomUUID } from "node:crypto";
import { constants, createReadStream, createWriteStream } from "node:fs";
import { copyFile, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { arch } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract } from "tar-stream";
import { z } from "zod";
import { undefinedIf } from "../support/errno.ts";
import { jsonOf } from "../support/json.ts";
import type { ImageLimits } from "./image-limits.ts";
import { DIGEST } from "./image-reference.ts";
import { followManifest, type FoundManifest, type ImageSource, type LayerWish } from "./image-source.ts";
import { readManifest, refused, thisPlatform, type Descriptor } from "./manifest.ts";

/** The only names that are unpacked; an archive has others, such as `oci-layout`, that nobody needs. */
const KNOWN =
  /^(?:\.\/)?(index\.json|manifest\.json|blobs\/sha256\/[0-9a-f]{64}|[0-9a-f]{64}\.json|[0-9a-f]{64}(?:\/layer)?\.tar)$/;
const MAX_FILES = 2000;
const REF_NAME = "org.opencontainers.image.ref.name";
const CONTAINERD_NAME = "io.containerd.image.name";
const NAME = "the archive";

const dockerSchema = z
  .array(z.looseObject({ Config: z.string(), RepoTags: z.array(z.string()).nullish(), Layers: z.array(z.string()) }))
  .min(1);
const layoutSchema = z.looseObject({
  manifests: z
    .array(
      z.looseObject({ digest: z.string().regex(DIGEST), annotations: z.record(z.string(), z.string()).optional() }),
    )
    .min(1),
});

export interface ArchiveSource extends ImageSource {
  readonly names: readonly string[];
}

/** An image of an OCI layout that others may use too. */
export async function openLayout(
  folder: string,
  tag: string | undefined,
  limits: ImageLimits,
): Promise<Pick<LayoutSource, keyof ImageSource>> {
  const name = `in ${folder}`;
  const layout = layoutSchema.safeParse(jsonOf(await document(join(folder, "index.json"), limits)));
  if (!layout.success) throw refused(name, "the folder is not an OCI layout");
  const { manifests } = layout.data;
  const only = tag === undefined && manifests.length === 1 ? manifests[0] : undefined;
  const found = only ?? manifests.find(({ annotations }) => annotations?.[REF_NAME] === tag);
  if (found === undefined) throw refused(name, `the layout has no tag ${JSON.stringify(tag ?? "")}`);
  return new LayoutSource(folder, found.digest, [], limits, "copy");
}

/** Unpacks an archive of one image into a folder of its own for the time of `work`. */
export async function withArchive<Result>(
  archive: AsyncIterable<Uint8Array>,
  parent: string,
  limits: ImageLimits,
  work: (source: ArchiveSource) => Promise<Result>,
): Promise<Result> {
  const folder = join(parent, randomUUID());
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await unpackKnown(archive, folder, limits);
    return await work(await sourceIn(folder, limits));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function unpackKnown(archive: AsyncIterable<Uint8Array>, folder: string, limits: ImageLimits): Promise<void> {
  const entries = extract();
  const reading = pipeline(Readable.from(archive), entries);
  reading.catch(() => {});
  let [files, bytes] = [0, 0];
  try {
    for await (const entry of entries) {
      const [, name] = KNOWN.exec(entry.header.name) ?? [];
      if (name === undefined || entry.header.type !== "file") {
        entry.resume();
        continue;
      }
      if (++files > MAX_FILES) throw refused(NAME, `it has more than ${MAX_FILES} files`);
      const path = join(folder, name);
      await mkdir(dirname(path), { recursive: true });
      await pipeline(
        entry,
        async function* count(chunks: AsyncIterable<Buffer>) {
          for await (const chunk of chunks) {
            bytes += chunk.length;
            if (bytes > limits.unpackedBytes) throw refused(NAME, `it has more than ${limits.unpackedBytes} bytes`);
            yield chunk;
          }
        },
        createWriteStream(path, { mode: 0o600 }),
      );
    }
    await reading;
  } catch (error) {
    if (error instanceof SandboxerError || (error as NodeJS.ErrnoException).code === "ENOSPC") throw error;
    throw refused(NAME, `it is not a complete tar archive (${(error as Error).message})`);
  } finally {
    entries.destroy();
  }
}

async function sourceIn(folder: string, limits: ImageLimits): Promise<ArchiveSource> {
  const layout = layoutSchema.safeParse(jsonOf(await document(join(folder, "index.json"), limits)));
  const docker = dockerSchema.safeParse(jsonOf(await document(join(folder, "manifest.json"), limits)));
  const tags = docker.success ? (docker.data[0]?.RepoTags ?? []) : [];
  if (layout.success) {
    const [first, ...others] = layout.data.manifests;
    if (first === undefined || others.length > 0) throw refused(NAME, "it has several images; save one at a time");
    const { [CONTAINERD_NAME]: full, [REF_NAME]: reference } = first.annotations ?? {};
    // A reference is often only a tag.
    const named = [...tags, full, reference?.includes("/") === true ? reference : undefined];
    return new LayoutSource(folder, first.digest, [...new Set(named.filter((name) => name !== undefined))], limits);
  }
  if (!docker.success) throw refused(NAME, "it is neither an OCI layout nor an archive of `docker save`");
  const [image, ...others] = docker.data;
  if (image === undefined || others.length > 0) throw refused(NAME, "it has several images; save one at a time");
  const digest = await asLayout(folder, image.Config, image.Layers, limits);
  return new LayoutSource(folder, digest, tags, limits);
}

/** Archives of older Docker engines have no manifest: the one that their parts make, always the same for them. */
async function asLayout(
  folder: string,
  configName: string,
  layerNames: readonly string[],
  limits: ImageLimits,
): Promise<string> {
  if (layerNames.length > limits.layers) throw refused(NAME, `it has ${layerNames.length} layers`);
  await mkdir(join(folder, "blobs", "sha256"), { recursive: true });
  const blob = async (name: string): Promise<Descriptor> => {
    if (!KNOWN.test(name)) throw refused(NAME, "its manifest names a file that no image has");
    const path = join(folder, name);
    const digest = await digestOf(path).catch(() => undefined);
    if (digest === undefined) throw refused(NAME, `its file ${name} is missing`);
    const { size } = await stat(path);
    await rename(path, blobPath(folder, digest));
    return { digest, size };
  };
  const type = (kind: string): string => `application/vnd.oci.image.${kind}`;
  const config = { mediaType: type("config.v1+json"), ...(await blob(configName)) };
  const layers = [];
  for (const name of layerNames) layers.push({ mediaType: type("layer.v1.tar"), ...(await blob(name)) });
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: type("manifest.v1+json"), config, layers });
  const digest = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
  const file = await open(blobPath(folder, digest), "w");
  await file.writeFile(manifest);
  await file.close();
  return digest;
}

/** An OCI layout in a folder. A file that changes meanwhile is detected by its digest when it is unpacked. */
class LayoutSource implements ArchiveSource {
  readonly names: readonly string[];
  readonly #folder: string;
  readonly #digest: string;
  readonly #limits: ImageLimits;
  readonly #manner: "move" | "copy";

  constructor(
    folder: string,
    digest: string,
    names: readonly string[],
    limits: ImageLimits,
    manner: "move" | "copy" = "move",
  ) {
    this.#manner = manner;
    this.#folder = folder;
    this.#digest = digest;
    this.names = names;
    this.#limits = limits;
  }

  async manifest(): Promise<FoundManifest> {
    const read = async (digest: string): Promise<{ bytes: Buffer; digest: string }> => ({
      bytes: await this.#verified(digest),
      digest,
    });
    const found = await followManifest(NAME, this.#digest, read, this.#limits, thisPlatform(arch()));
    // `docker save` puts an index into the index.
    if (found !== undefined) return found;
    const inner = readManifest(NAME, await this.#verified(this.#digest), this.#limits, thisPlatform(arch()));
    if ("layers" in inner) throw refused(NAME, "its index leads to another index");
    const nested = await followManifest(NAME, inner.digest, read, this.#limits, thisPlatform(arch()));
    if (nested === undefined) throw refused(NAME, "its index leads to another index");
    return nested;
  }

  document({ digest }: Descriptor): Promise<Buffer> {
    return this.#verified(digest);
  }

  async layer({ blob, path, onBytes }: LayerWish): Promise<void> {
    const from = blobPath(this.#folder, blob.digest);
    const found = await digestOf(from).catch(undefinedIf("ENOENT"));
    if (found !== blob.digest)
      throw refused(NAME, `its layer ${blob.digest} is ${found === undefined ? "missing" : "damaged"}`);
    if (this.#manner === "move") await rename(from, path);
    else await copyFile(from, path, constants.COPYFILE_FICLONE);
    onBytes?.(blob.size);
  }

  async #verified(digest: string): Promise<Buffer> {
    const bytes = await document(blobPath(this.#folder, digest), this.#limits);
    if (bytes.length === 0) throw refused(NAME, `its part ${digest} is missing`);
    const found = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    if (found !== digest) throw refused(NAME, `its part ${digest} has the digest ${found}`);
    return bytes;
  }
}

function blobPath(folder: string, digest: string): string {
  return join(folder, "blobs", "sha256", digest.replace(/^sha256:/, ""));
}

/** Empty: it is missing. */
async function document(path: string, { documentBytes }: ImageLimits): Promise<Buffer> {
  const file = await open(path, "r").catch(undefinedIf("ENOENT"));
  if (file === undefined) return Buffer.alloc(0);
  try {
    const { size } = await file.stat();
    if (size > documentBytes) throw refused(NAME, `one of its documents has more than ${documentBytes} bytes`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
  }
  return `sha256:${hash.digest("hex")}`;
}
