import { createCipheriv } from "node:crypto";

const ALGORITHM = "aes-128-gcm";
const KEY = Buffer.alloc(16);
const NONCE = Buffer.alloc(12);

/**
 * The first 8 bytes of a block's GMAC under a zero key. It detects disk errors in a local copy, at seven times the
 * speed of SHA-256, but not attacks: data from the store is compared with its SHA-256.
 */
export function checkOf(block: Uint8Array): bigint {
  const sum = createCipheriv(ALGORITHM, KEY, NONCE).setAAD(block);
  sum.final();
  return sum.getAuthTag().readBigUInt64LE();
}
