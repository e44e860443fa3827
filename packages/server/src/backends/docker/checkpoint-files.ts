import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { extract, pack, type Pack } from "tar-stream";
import type { CallOptions } from "../../support/call-options.ts";
import type { SnapshotMember } from "../backend.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";
import { labelsOf, newContainerName } from "./labels.ts";
import { sandboxConfig } from "./sandbox-config.ts";

/** The prefix of member names. */
export const MEMBERS = "checkpoint";
/** The name of a checkpoint in a container that will start from it. */
export const LOADED = "loaded";
/** The mount point of the checkpoints folder. */
const MOUNTED = "/checkpoints";
const FILE_NAME = /^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,128}$/;

export interface CheckpointPlace {
  readonly engine: DockerEngine;
  readonly instanceId: string;
  readonly owner: string;
  /** The engine's data folder, on its machine. */
  readonly rootFolder: string;
}

interface Container {
  readonly id: string;
  /** An image that the engine has. */
  readonly image: string;
}

/** Streams the files of a container's checkpoint into a folder. */
export async function takeCheckpoint(
  place: CheckpointPlace,
  container: Container,
  checkpoint: string,
  into: string,
  options: CallOptions,
): Promise<SnapshotMember[]> {
  const folder = join(into, MEMBERS);
  await mkdir(folder);
  return withCheckpoints(place, container, "read", async (helper) => {
    const answer = await place.engine.getArchive(helper, `${MOUNTED}/${checkpoint}`, options);
    const archive = extract();
    // A failure there ends the archive, and shows below.
    const feeding = pipeline(answer, archive, { signal: options.signal }).catch(() => {});
    const members: SnapshotMember[] = [];
    try {
      for await (const entry of archive) {
        const { type, name } = entry.header;
        if (type === "directory" && name.replace(/\/$/, "") === checkpoint) {
          entry.resume();
          continue;
        }
        const file = name.slice(checkpoint.length + 1);
        if (type !== "file" || !FILE_NAME.test(file)) throw unknownFile(name);
        const path = join(folder, file);
        await pipeline(entry, createWriteStream(path));
        members.push({ name: `${MEMBERS}/${file}`, path, sizeBytes: (await stat(path)).size });
      }
    } finally {
      archive.destroy();
      await feeding;
    }
    if (members.length === 0) throw new SandboxerError("backend_unavailable", "Docker's checkpoint is empty.");
    return members;
  });
}

/** The checkpoint files among the members of a snapshot; checks their names. */
export function checkpointMembers(members: readonly SnapshotMember[]): SnapshotMember[] {
  const found = members.filter(({ name }) => name.startsWith(`${MEMBERS}/`));
  const strange = found.find(({ name }) => !FILE_NAME.test(fileOf(name)));
  if (strange !== undefined) throw new SandboxerError("image_damaged", `A snapshot has no member ${strange.name}.`);
  if (found.length === 0) throw new SandboxerError("image_damaged", "The snapshot has no memory.");
  return found;
}

/** Gives the checkpoint {@link LOADED} to a container that was never started. */
export async function giveCheckpoint(
  place: CheckpointPlace,
  container: Container,
  members: readonly SnapshotMember[],
  options: CallOptions,
): Promise<void> {
  await withCheckpoints(place, container, "write", async (helper) => {
    const archive = pack();
    // A failure there ends the archive, and so the upload.
    const packing = packFiles(archive, members).catch((error: unknown) => {
      archive.destroy(error as Error);
    });
    try {
      await place.engine.putArchive(helper, "/", Readable.from(archive), options);
    } finally {
      archive.destroy();
      await packing;
    }
  });
}

async function packFiles(archive: Pack, members: readonly SnapshotMember[]): Promise<void> {
  const folder = `${MOUNTED.slice(1)}/${LOADED}`;
  archive.entry({ name: `${folder}/`, type: "directory", mode: 0o700 });
  // The engine identifies checkpoints by content, and fails if it loads the same one twice at a time.
  archive.entry({ name: `${folder}/load-id`, mode: 0o600 }, randomUUID());
  for (const { name, path } of members) {
    const { size } = await stat(path);
    await pipeline(createReadStream(path), archive.entry({ name: `${folder}/${fileOf(name)}`, size, mode: 0o600 }));
  }
  archive.finalize();
}

/**
 * The engine has no API for a checkpoint's files, and accepts none from elsewhere. But it reads and writes files of a
 * container that never ran, including its mounts, so that they are accessible wherever the engine is.
 */
async function withCheckpoints<Result>(
  { engine, instanceId, owner, rootFolder }: CheckpointPlace,
  { id, image }: Container,
  access: "read" | "write",
  work: (helperId: string) => Promise<Result>,
): Promise<Result> {
  const source = `${rootFolder}/containers/${id}/checkpoints`;
  const request = { sandboxId: "", spec: { env: {}, resources: {}, network: "none" as const } };
  const config = sandboxConfig({
    request,
    imageId: image,
    labels: labelsOf(request, owner, { resyncToken: "" }),
    resources: {},
    mounts: [{ source, target: MOUNTED, writable: access === "write" }],
    network: undefined,
    runtime: undefined,
  });
  const helperId = await engine.createContainer(newContainerName(instanceId), config);
  try {
    return await work(helperId);
  } finally {
    await engine.removeContainer(helperId);
  }
}

function fileOf(memberName: string): string {
  return memberName.slice(MEMBERS.length + 1);
}

function unknownFile(name: string): SandboxerError {
  return new SandboxerError("backend_unavailable", `Docker's checkpoint has a file that cannot be kept: ${name}.`);
}
