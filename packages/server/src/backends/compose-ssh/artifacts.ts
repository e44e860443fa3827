import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { ExtensionRecord, ExtensionSnapshot, ExtensionTools, SnapshotRequest } from "../extension/extension.ts";
import type { ComposeProject } from "./handle.ts";
import { artifactPath } from "./remote-paths.ts";
import { runRemote } from "./run-remote.ts";
import { ARTIFACT_DIGEST, PACK, RECEIVE_ARTIFACT, REMOVE_ARTIFACT, scriptFor, SEND_ARTIFACT } from "./scripts.ts";
import type { ScriptTarget } from "./scripts.ts";
import type { SshConnection } from "./ssh-connection.ts";

const MEMBER = "workspace.tar.gz";

const recordSchema = z.object({
  snapshot_id: z.string(),
  host: z.string(),
  remote_path: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size_bytes: z.string().regex(/^\d+$/).transform(Number),
  compose_file: z.string(),
  service: z.string(),
});

/** The record of a snapshot. */
export type ArtifactRecord = z.infer<typeof recordSchema>;

export function readArtifactRecord(record: ExtensionRecord): ArtifactRecord {
  const result = recordSchema.safeParse(record);
  if (result.success) return result.data;
  throw new SandboxerError(
    "image_damaged",
    `The record of the snapshot is damaged: ${result.error.issues[0]?.message}`,
  );
}

/** Packs the workspace on its host, where the artifact stays, and downloads a copy. On failure neither is left. */
export async function packWorkspace(
  connection: SshConnection,
  project: ComposeProject,
  request: SnapshotRequest,
  tools: ExtensionTools,
): Promise<ExtensionRecord> {
  const { snapshotId } = request;
  const artifact = artifactPath(project.baseDir, snapshotId);
  tools.progress({ phase: "packing" });
  try {
    const paused = request.paused ? "yes" : "no";
    const packed = await runRemote(connection, scriptFor(project, PACK, { artifact, paused }), {
      signal: tools.signal,
    });
    const [, sha256 = "", size = ""] = /^([0-9a-f]{64}) +(\d+)$/.exec(packed.trim()) ?? [];
    if (sha256 === "")
      throw new SandboxerError("backend_unavailable", `tar on the host said "${packed.slice(0, 80)}".`);
    const member = join(request.into, MEMBER);
    await fetchArtifact(connection, project, { artifact, sha256, sizeBytes: Number(size) }, member, tools);
    return {
      snapshot_id: snapshotId,
      host: project.placement.host,
      remote_path: artifact,
      sha256,
      size_bytes: size,
      compose_file: project.composeFile,
      service: project.service,
    };
  } catch (thrown) {
    await runRemote(connection, scriptFor(project, REMOVE_ARTIFACT, { artifact })).catch(() => {});
    throw thrown;
  }
}

async function fetchArtifact(
  connection: SshConnection,
  project: ComposeProject,
  { artifact, sha256, sizeBytes }: { artifact: string; sha256: string; sizeBytes: number },
  member: string,
  tools: ExtensionTools,
): Promise<void> {
  const hash = createHash("sha256");
  let doneBytes = 0;
  try {
    await runRemote(connection, scriptFor(project, SEND_ARTIFACT, { artifact }), {
      signal: tools.signal,
      output: (data) =>
        pipeline(
          data,
          async function* (chunks: AsyncIterable<Uint8Array>) {
            for await (const chunk of chunks) {
              hash.update(chunk);
              doneBytes += chunk.length;
              tools.progress({ phase: "fetching", doneBytes, totalBytes: sizeBytes });
              yield chunk;
            }
          },
          createWriteStream(member, { flags: "wx" }),
        ),
    });
    if (doneBytes !== sizeBytes || hash.digest("hex") !== sha256) {
      throw new SandboxerError("backend_unavailable", "The artifact of the snapshot arrived incomplete. Try again.");
    }
  } catch (thrown) {
    await rm(member, { force: true });
    throw thrown;
  }
}

/**
 * Ensures that the artifact is on the host: the existing one if its digest is right, otherwise the snapshot's member,
 * which makes a restore on another host possible. An uploaded artifact belongs to this sandbox, and is removed once it
 * was unpacked.
 */
export async function provideArtifact(
  connection: SshConnection,
  target: ScriptTarget,
  record: ArtifactRecord,
  snapshot: ExtensionSnapshot,
  tools: ExtensionTools,
): Promise<{ readonly artifact: string; readonly brought: boolean }> {
  const artifact = artifactPath(target.baseDir, record.snapshot_id);
  const { signal } = tools;
  const there = await runRemote(connection, scriptFor(target, ARTIFACT_DIGEST, { artifact }), { signal });
  if (there === record.sha256) return { artifact, brought: false };
  const member = snapshot.members.find(({ name }) => name === MEMBER);
  if (member === undefined) {
    const wrong = there === "" ? "does not exist" : "has a different digest";
    throw new SandboxerError(
      "image_damaged",
      `The snapshot's artifact ${artifact} on the host ${wrong}, and there is no copy.`,
    );
  }
  let doneBytes = 0;
  const input = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of createReadStream(member.path) as AsyncIterable<Uint8Array>) {
      doneBytes += chunk.length;
      tools.progress({ phase: "uploading", doneBytes, totalBytes: member.sizeBytes });
      yield chunk;
    }
  };
  const own = `${artifact}.${target.sandboxId}.part`;
  const script = scriptFor(target, RECEIVE_ARTIFACT, { artifact: own, sha256: record.sha256 });
  await runRemote(connection, script, { signal, input: input() });
  return { artifact: own, brought: true };
}

export async function removeArtifact(connection: SshConnection, target: ScriptTarget, artifact: string): Promise<void> {
  await runRemote(connection, scriptFor(target, REMOVE_ARTIFACT, { artifact }));
}
