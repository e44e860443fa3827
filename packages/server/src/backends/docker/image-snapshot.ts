import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { asSandboxerError, isErrno, SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { CallOptions } from "../../support/call-options.ts";
import type { SnapshotPayload } from "../backend.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";
import { checkImageArchive } from "./image-archive.ts";
import { Label, RESYNC_VARIABLE } from "./labels.ts";

export const IMAGE_MEMBER = "image.tar";
const REPOSITORY = "sandboxer-snapshot";

/** The requirements of a snapshot. */
const ImageRequirements = z.object({
  architecture: z.string(),
  image_name: z.string().regex(/^sandboxer-snapshot:[0-9a-f-]{36}$/),
});

/** A container's files as an image of the engine, until {@link exportSnapshot} has downloaded it. */
export async function commitContainer(
  engine: DockerEngine,
  id: string,
  instanceId: string,
  { withToken = false } = {},
): Promise<string> {
  const tag = randomUUID();
  const Labels = { [Label.snapshot]: instanceId, ...(withToken ? {} : { [Label.resyncToken]: "" }) };
  // The token of the running agent must not be shared, unless its memory is saved too.
  await engine.commit(id, REPOSITORY, tag, withToken ? { Labels } : { Labels, Env: [`${RESYNC_VARIABLE}=`] });
  return `${REPOSITORY}:${tag}`;
}

/** Streams a committed image into a folder, and removes it from the engine, whatever happens. */
export async function exportSnapshot(
  engine: DockerEngine,
  name: string,
  into: string,
  { architecture, ...options }: CallOptions & { readonly architecture: string },
): Promise<SnapshotPayload> {
  const path = join(into, IMAGE_MEMBER);
  try {
    options.onProgress?.({ phase: "saving files" });
    await pipeline(await engine.exportImage(name, options), createWriteStream(path), { signal: options.signal });
    const member = { name: IMAGE_MEMBER, path, sizeBytes: (await stat(path)).size };
    const requirements: z.input<typeof ImageRequirements> = { architecture, image_name: name };
    return { kind: "docker-image-tar", members: [member], requirements };
  } catch (error) {
    await rm(path, { force: true }).catch(() => {});
    throw options.signal?.aborted === true ? options.signal.reason : asSandboxerError(error);
  } finally {
    await engine.removeImage(name);
  }
}

export interface LoadableSnapshot {
  readonly name: string;
  readonly path: string;
}

/** Checks whether a snapshot can be loaded, before anything is done. */
export async function checkSnapshot(snapshot: SnapshotPayload, architecture: string): Promise<LoadableSnapshot> {
  const parsed = ImageRequirements.safeParse(snapshot.requirements);
  if (!parsed.success) throw new SandboxerError("image_damaged", "The snapshot does not list its requirements.");
  const wanted = parsed.data;
  if (wanted.architecture !== architecture) {
    const message = `The snapshot was made on ${wanted.architecture}; the Docker engine here is ${architecture}.`;
    throw new SandboxerError("image_incompatible", message);
  }
  const path = snapshot.members.find(({ name }) => name === IMAGE_MEMBER)?.path;
  if (path === undefined) throw new SandboxerError("image_damaged", `The snapshot has no member ${IMAGE_MEMBER}.`);
  try {
    await checkImageArchive(path, wanted.image_name);
  } catch (error) {
    if (!isErrno(error)) throw error;
    throw new SandboxerError("image_damaged", `The snapshot's member ${IMAGE_MEMBER} cannot be read.`, {
      cause: error,
    });
  }
  return { name: wanted.image_name, path };
}

/** Loads the image of a snapshot into the engine; returns its id. */
export async function loadSnapshot(
  engine: DockerEngine,
  { name, path }: LoadableSnapshot,
  options: CallOptions,
): Promise<string> {
  options.onProgress?.({ phase: "loading the image" });
  await engine.loadImage(createReadStream(path), options);
  const image = await engine.image(name);
  if (image !== undefined) return image.Id;
  throw new SandboxerError("image_damaged", `The snapshot's image ${name} was loaded but is missing.`);
}
