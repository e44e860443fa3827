import { createHash } from "node:crypto";

/** What a difference makes a block from. */
export interface Derivation {
  /** Of the block that it is taken to, and of the one behind that, if it reaches into it. */
  readonly digests: readonly [first: Uint8Array, second: Uint8Array | undefined];
  readonly shift: number;
  readonly rawBytes: number;
  /** The difference as it is stored, before it is encrypted. */
  readonly bytes: Uint8Array;
}

const NONE = Buffer.alloc(32);

/**
 * The digest of a block that is stored as a difference. It says as much as one of the block's bytes: they follow from what
 * has digests itself. But only what has changed is hashed.
 */
export function derivedDigest({ digests: [first, second = NONE], shift, rawBytes, bytes }: Derivation): Buffer {
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32LE(shift, 0);
  numbers.writeUInt32LE(rawBytes, 4);
  return createHash("sha256").update(first).update(second).update(numbers).update(bytes).digest();
}
