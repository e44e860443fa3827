import { createCipheriv } from "node:crypto";

const ALGORITHM = "aes-128-gcm";
const KEY = Buffer.alloc(16);
const NONCE = Buffer.alloc(12);

/**
 * The first 8 bytes of a block's GMAC under a key of zeros. It finds what a disk did to a copy, at seven times the speed of a
 * SHA-256, and says nothing against somebody who means harm: what comes from the store is held against its SHA-256.
 */
export function checkOf(block: Uint8Array): bigint {
  const sum = createCipheriv(ALGORITHM, KEY, NONCE).setAAD(block);
  sum.final();
  return sum.getAuthTag().readBigUInt64LE();
}
