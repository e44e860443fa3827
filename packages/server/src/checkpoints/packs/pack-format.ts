/** A pack: magic, format, zeros, then blocks back to back. What they are is said by the images that name them. */
export const PACK_FORMAT = 1;
export const PACK_MAGIC: Uint8Array = Buffer.from("SBX-PACK", "latin1");
export const PACK_HEADER_BYTES = 16;

export function encodePackHeader(): Uint8Array {
  const header = Buffer.alloc(PACK_HEADER_BYTES);
  header.set(PACK_MAGIC, 0);
  header.writeUInt32LE(PACK_FORMAT, 8);
  return header;
}
