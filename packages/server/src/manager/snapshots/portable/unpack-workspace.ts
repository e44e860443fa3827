import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { Header } from "tar-stream";
import type { SandboxBackend, SandboxHandle, SnapshotPayload } from "../../../backends/backend.ts";
import type { CallOptions } from "../../../support/call-options.ts";
import { unpackTree, type Owner, type Unpacked } from "../../files/upload-tree.ts";
import { DEFAULT_WORKSPACE, WORKSPACE_MEMBER } from "./workspace-archive.ts";

const SET_ID_BITS = 0o6000;
/** Some backends make a request for each piece of a file. */
const CHUNK_BYTES = 256 * 1024;

/** The archive of a portable capture; refused before anything is created if it is missing. */
export function archivePath({ members }: Pick<SnapshotPayload, "members">): string {
  const path = members.find(({ name }) => name === WORKSPACE_MEMBER)?.path;
  if (path !== undefined) return path;
  throw new SandboxerError("image_incompatible", `The snapshot has no member ${WORKSPACE_MEMBER}.`, {
    hint: "Restore it on the backend that took it.",
  });
}

/**
 * Unpacks a captured workspace into a sandbox that is not in use yet. Files of the captured sandbox's user belong to
 * the user of this one. If the backend supports owners, other files keep theirs, without setuid bits: nobody becomes
 * root through a file. Returns what was lost.
 */
export async function unpackWorkspace(
  backend: SandboxBackend,
  handle: SandboxHandle,
  path: string,
  options: CallOptions,
): Promise<Unpacked> {
  const folder = (await handle.workspaceFolder?.()) ?? backend.workspaceFolder ?? DEFAULT_WORKSPACE;
  const { rawFiles } = handle;
  options.onProgress?.({ phase: "unpacking files" });
  const archive = createReadStream(path, { signal: options.signal });
  const bytes = createGunzip({ chunkSize: CHUNK_BYTES });
  archive.once("error", (error) => bytes.destroy(error));
  archive.pipe(bytes);
  const unpack = async (): Promise<Unpacked> => {
    if (rawFiles === undefined) {
      await handle.files.makeFolder(folder, { parents: true });
      return await unpackTree(handle.files, folder, bytes, { names: "utf8" });
    }
    const { uid, gid } = await rawFiles.stat(folder);
    return await unpackTree(rawFiles, folder, bytes, { names: "latin1", ...ownersFor({ uid, gid }) });
  };
  try {
    // Processes that setup left running must not mislead root.
    return await (handle.whileFrozen?.(unpack) ?? unpack());
  } catch (thrown) {
    options.signal?.throwIfAborted();
    throw damaged(thrown);
  } finally {
    archive.destroy();
  }
}

function ownersFor(user: Owner): { owner: (header: Header) => Owner; mode: (header: Header, mode: number) => number } {
  let captured: Owner | undefined;
  const owner = ({ uid, gid }: Header): Owner => {
    // The folder itself comes first, and belongs to the user.
    captured ??= { uid, gid };
    return { uid: uid === captured.uid ? user.uid : uid, gid: gid === captured.gid ? user.gid : gid };
  };
  const mode = (header: Header, given: number): number => {
    const { uid, gid } = owner(header);
    return uid === user.uid && gid === user.gid ? given : given & ~SET_ID_BITS;
  };
  return { owner, mode };
}

/** The archive comes from a store: its errors are not the caller's fault. */
function damaged(thrown: unknown): SandboxerError {
  const error = asSandboxerError(thrown);
  if (error.code !== "bad_request") return error;
  return new SandboxerError("image_damaged", `The captured workspace cannot be unpacked: ${error.message}`, {
    cause: thrown,
    hint: "Use another snapshot.",
    details: error.details,
  });
}
