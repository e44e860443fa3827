import { createHash } from "node:crypto";
import type { ObjectStore } from "../../store/store.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { imageDamaged } from "../image-errors.ts";
import {
  ALIGNMENT_BYTES,
  encodeHeader,
  IMAGE_FORMAT,
  IMAGE_MAGIC,
  type ManifestMember,
  paddingAfter,
} from "../image-format.ts";
import { ImageReader } from "./image-reader.ts";
import type { OpenPlainImage } from "../open-image.ts";

/** Where the bytes of a member go. */
export interface MemberSink {
  /** The piece is good until the promise resolves. */
  write(piece: Uint8Array): Promise<void>;
  /** Called once, however it ended. */
  close(): Promise<void>;
}

/** Reads every byte of an image, checking each digest on the way; throws `image_damaged` with the first that is wrong. */
export async function readImage(
  store: ObjectStore,
  image: OpenPlainImage,
  sinkOf: (member: ManifestMember) => Promise<MemberSink>,
  options: CallOptions & { readonly phase: string },
): Promise<void> {
  const { key, manifest } = image;
  const reader = new ImageReader(store, image, options.signal);
  const totalBytes = manifest.members.reduce((sum, member) => sum + member.size_bytes, 0);
  let doneBytes = 0;
  const onPiece = (pieceBytes: number): void => {
    doneBytes += pieceBytes;
    options.onProgress?.({ phase: options.phase, doneBytes, totalBytes });
  };
  try {
    await checkHeader(key, reader);
    for (const member of manifest.members) {
      await readMember(key, reader, member, await sinkOf(member), onPiece);
      await checkPadding(key, reader, member);
    }
  } finally {
    await reader.close();
  }
}

/** Reads an image for nothing but its digests. */
export async function verifyImage(store: ObjectStore, image: OpenPlainImage, options: CallOptions): Promise<void> {
  const nowhere: MemberSink = { write: async () => {}, close: async () => {} };
  await readImage(store, image, async () => nowhere, { ...options, phase: "verifying" });
}

async function readMember(
  key: string,
  reader: ImageReader,
  member: ManifestMember,
  sink: MemberSink,
  onPiece: (pieceBytes: number) => void,
): Promise<void> {
  const hash = createHash("sha256");
  try {
    for await (const piece of reader.take(member.size_bytes, member.name)) {
      const written = sink.write(piece);
      hash.update(piece);
      await written;
      onPiece(piece.byteLength);
    }
  } finally {
    await sink.close();
  }
  if (hash.digest("hex") !== member.sha256) throw imageDamaged(key, "its digest differs", member.name);
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
