import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotKind, SnapshotMember, SnapshotPayload } from "../../backends/backend.ts";
import type { ObjectStore } from "../../store/store.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { OpenPlainImage } from "../open-image.ts";
import { type MemberSink, readImage } from "./read-plain-image.ts";

/**
 * Extracts every member into a folder, checking each digest while writing. When it throws, what lies in the folder must
 * not be used. Nothing is synced: the image stays, and can be extracted again.
 */
export async function unpackImage(
  store: ObjectStore,
  image: OpenPlainImage,
  into: string,
  options: CallOptions = {},
): Promise<SnapshotPayload> {
  const { manifest } = image;
  const members: SnapshotMember[] = [];
  const sinkOf = async ({ name, size_bytes: sizeBytes }: { name: string; size_bytes: number }): Promise<MemberSink> => {
    const path = join(into, name);
    await mkdir(dirname(path), { recursive: true });
    const handle = await open(path, "wx", 0o600);
    members.push({ name, path, sizeBytes });
    return { write: (piece) => writeAll(handle, piece), close: () => handle.close() };
  };
  await readImage(store, image, sinkOf, { ...options, phase: "unpacking" });
  // A kind of a later release is refused by the backend that is asked to load it.
  return { kind: manifest.kind as SnapshotKind, members, requirements: manifest.requirements };
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.byteLength - done);
    done += bytesWritten;
  }
}
