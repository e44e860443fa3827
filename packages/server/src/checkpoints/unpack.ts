import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotKind, SnapshotMember, SnapshotPayload } from "../backends/backend.ts";
import type { ObjectStore } from "../store/store.ts";
import type { CallOptions } from "../support/call-options.ts";
import { imageDamaged } from "./image-errors.ts";
import {
  ALIGNMENT_BYTES,
  encodeHeader,
  IMAGE_FORMAT,
  IMAGE_MAGIC,
  type ManifestMember,
  paddingAfter,
} from "./image-format.ts";
import { ImageReader } from "./image-reader.ts";
import type { OpenImage } from "./open-image.ts";

/**
 * Extracts every member into a folder, checking each digest while writing. When it throws, what lies in the folder must
 * not be used. Nothing is synced: the image stays, and can be extracted again.
 */
export async function unpackImage(
  store: ObjectStore,
  image: OpenImage,
  into: string,
  options: CallOptions = {},
): Promise<SnapshotPayload> {
  const { key, manifest } = image;
  const reader = new ImageReader(store, image, options.signal);
  const totalBytes = manifest.members.reduce((sum, member) => sum + member.size_bytes, 0);
  let doneBytes = 0;
  const onPiece = (pieceBytes: number): void => {
    doneBytes += pieceBytes;
    options.onProgress?.({ phase: "unpacking", doneBytes, totalBytes });
  };
  try {
    await checkHeader(key, reader);
    const members: SnapshotMember[] = [];
    for (const member of manifest.members) {
      members.push(await unpackMember(key, reader, member, into, onPiece));
      await checkPadding(key, reader, member);
    }
    // A kind of a later release is refused by the backend that is asked to load it.
    return { kind: manifest.kind as SnapshotKind, members, requirements: manifest.requirements };
  } finally {
    await reader.close();
  }
}

async function unpackMember(
  key: string,
  reader: ImageReader,
  member: ManifestMember,
  into: string,
  onPiece: (pieceBytes: number) => void,
): Promise<SnapshotMember> {
  const path = join(into, member.name);
  await mkdir(dirname(path), { recursive: true });
  const handle = await open(path, "wx", 0o600);
  const hash = createHash("sha256");
  try {
    for await (const piece of reader.take(member.size_bytes, member.name)) {
      const written = writeAll(handle, piece);
      hash.update(piece);
      await written;
      onPiece(piece.byteLength);
    }
  } finally {
    await handle.close();
  }
  if (hash.digest("hex") !== member.sha256) throw imageDamaged(key, "its digest differs", member.name);
  return { name: member.name, path, sizeBytes: member.size_bytes };
}

async function checkHeader(key: string, reader: ImageReader): Promise<void> {
  const header = await collect(reader.take(ALIGNMENT_BYTES));
  if (!header.subarray(0, IMAGE_MAGIC.byteLength).equals(IMAGE_MAGIC))
    throw imageDamaged(key, "bad magic at its start");
  const format = header.readUInt32LE(8);
  if (format !== IMAGE_FORMAT) throw imageDamaged(key, `unknown format version ${format}`);
  if (!header.equals(encodeHeader())) throw imageDamaged(key, "its header is not empty where it must be");
}

async function checkPadding(key: string, reader: ImageReader, member: ManifestMember): Promise<void> {
  const padding = await collect(reader.take(paddingAfter(member.size_bytes), member.name));
  if (padding.some((byte) => byte !== 0)) throw imageDamaged(key, "what follows it is not zeros", member.name);
}

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const collected: Uint8Array[] = [];
  for await (const piece of pieces) collected.push(Buffer.from(piece));
  return Buffer.concat(collected);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.byteLength - done);
    done += bytesWritten;
  }
}
