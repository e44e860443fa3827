import { createHash } from "node:crypto";
import { z } from "zod";

export const IMAGE_MAGIC: Uint8Array = Buffer.from("SBXIMAGE", "latin1");
/** For format 1: the size of its header, and the alignment of its members. */
export const ALIGNMENT_BYTES = 4096;
export const FOOTER_BYTES = 64;
/** Magic, format and zeros, at the start of every format. */
export const HEADER_START_BYTES = 16;

/** Far more than any manifest needs; a footer that asks for more is damaged. */
const LARGEST_MANIFEST_BYTES = 16 * 1024 * 1024;

/** The common part of every format's manifest. */
export const stateFields = {
  sandbox_id: z.string(),
  kind: z.string(),
  created_at: z.string(),
  /** The image that was the sandbox's previous state. */
  parent: z.string().nullable(),
  requirements: z.record(z.string(), z.unknown()),
};

export type ImageFormat = 1 | 2 | 3 | 4;

export interface Footer {
  readonly format: ImageFormat;
  /** The size of the manifest; from format 2 on of the envelope. */
  readonly manifestOffset: number;
  readonly manifestBytes: number;
  readonly manifestSha256: string;
}

export function encodeHeaderStart(format: ImageFormat): Uint8Array {
  const header = Buffer.alloc(HEADER_START_BYTES);
  header.set(IMAGE_MAGIC, 0);
  header.writeUInt32LE(format, 8);
  return header;
}

export function encodeFooter(footer: Footer): Uint8Array {
  const bytes = Buffer.alloc(FOOTER_BYTES);
  bytes.writeBigUInt64LE(BigInt(footer.manifestOffset), 0);
  bytes.writeBigUInt64LE(BigInt(footer.manifestBytes), 8);
  bytes.write(footer.manifestSha256, 16, "hex");
  bytes.writeUInt32LE(footer.format, 48);
  bytes.set(IMAGE_MAGIC, 56);
  return bytes;
}

/** The position of the manifest from the footer, or its problem. `sizeBytes` is the size of the whole image. */
export function decodeFooter(bytes: Buffer, sizeBytes: number): Footer | { readonly problem: string } {
  if (!bytes.subarray(56).equals(IMAGE_MAGIC)) {
    return { problem: `no footer at its end: truncated at byte ${sizeBytes}, or not an image` };
  }
  const format = bytes.readUInt32LE(48);
  if (format !== 1 && format !== 2 && format !== 3 && format !== 4)
    return { problem: `unknown format version ${format}` };
  const manifestOffset = Number(bytes.readBigUInt64LE(0));
  const manifestBytes = Number(bytes.readBigUInt64LE(8));
  const fits = manifestOffset + manifestBytes + FOOTER_BYTES === sizeBytes && manifestBytes <= LARGEST_MANIFEST_BYTES;
  const smallestOffset = format === 1 ? ALIGNMENT_BYTES : HEADER_START_BYTES;
  if (!fits || manifestOffset < smallestOffset || bytes.readUInt32LE(52) !== 0) {
    return { problem: "the footer does not fit the file" };
  }
  return { format, manifestOffset, manifestBytes, manifestSha256: bytes.toString("hex", 16, 48) };
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
