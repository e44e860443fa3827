import { randomBytes } from "node:crypto";

const NONCE_BYTES = 8;
const TRAILER = /\n[ \t]{64}$/;
const TRAILER_CHARACTERS = 65;

/**
 * The version of an object in S3 is most often the checksum of its bytes, so that a cell which returns to an earlier body
 * returns to its earlier version. Each write therefore ends in a line of 64 spaces and tabs, drawn anew: to whoever reads
 * JSON it is nothing.
 */
export function withTrailer(body: Uint8Array): Buffer {
  let trailer = "\n";
  for (const byte of randomBytes(NONCE_BYTES)) {
    for (let bit = 0; bit < 8; bit++) trailer += (byte >> bit) & 1 ? "\t" : " ";
  }
  return Buffer.concat([body, Buffer.from(trailer)]);
}

/** The cell's own body. An object without the line was put there by somebody else, and is taken as it is. */
export function withoutTrailer(stored: Uint8Array): Uint8Array {
  const bodyBytes = stored.byteLength - TRAILER_CHARACTERS;
  if (bodyBytes < 0) return stored;
  return TRAILER.test(Buffer.from(stored.subarray(bodyBytes)).toString("latin1"))
    ? stored.subarray(0, bodyBytes)
    : stored;
}
