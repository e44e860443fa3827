import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { DataKey } from "../data-keys.ts";
import { KEY_BYTES } from "./master-key.ts";

const MAGIC = Buffer.from("SBX-SEAL");
const ID_CHARACTERS = 36;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = MAGIC.byteLength + ID_CHARACTERS + NONCE_BYTES;

/** Bytes beside an image, under its data key: magic, the key's id, nonce, ciphertext, tag. `what` describes them. */
export function sealBytes({ id, bytes }: DataKey, what: string, plain: Uint8Array): Buffer {
  const header = Buffer.concat([MAGIC, Buffer.from(id), randomBytes(NONCE_BYTES)]);
  const cipher = createCipheriv("aes-256-gcm", keyFor(bytes, what), header.subarray(-NONCE_BYTES)).setAAD(header);
  return Buffer.concat([header, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** The id of the bytes' data key; undefined: they are not sealed. */
export function sealedWith(stored: Buffer): string | undefined {
  if (!stored.subarray(0, MAGIC.byteLength).equals(MAGIC)) return undefined;
  return stored.subarray(MAGIC.byteLength, MAGIC.byteLength + ID_CHARACTERS).toString("latin1");
}

/** Undefined if they do not decrypt. */
export function unsealBytes(dataKey: Uint8Array, what: string, stored: Buffer): Buffer | undefined {
  if (stored.byteLength < HEADER_BYTES + TAG_BYTES) return undefined;
  const header = stored.subarray(0, HEADER_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", keyFor(dataKey, what), header.subarray(-NONCE_BYTES));
  decipher.setAAD(header).setAuthTag(stored.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(stored.subarray(HEADER_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}

function keyFor(dataKey: Uint8Array, what: string): Buffer {
  return Buffer.from(hkdfSync("sha256", dataKey, what, "sandboxer sealed bytes", KEY_BYTES));
}
