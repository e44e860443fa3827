import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { isSameSecret } from "../../support/same-secret.ts";

export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FINGERPRINT_DIGITS = 16;

/**
 * A key that is in no store: a secret of this server, or from a client's request. It encrypts data keys, and the keys
 * of records' seals and of proofs between servers are derived from it. Printed, logged or converted to JSON it is its
 * fingerprint, which reveals nothing.
 */
export class MasterKey {
  readonly fingerprint: string;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    if (bytes.byteLength !== KEY_BYTES) throw new RangeError(`A key has ${KEY_BYTES} bytes.`);
    this.#bytes = Uint8Array.from(bytes);
    const derived = Buffer.from(hkdfSync("sha256", this.#bytes, "", "sandboxer fingerprint", KEY_BYTES));
    this.fingerprint = createHash("sha256").update(derived).digest("hex").slice(0, FINGERPRINT_DIGITS);
  }

  /** 32 bytes as hex, base64 or base64url; undefined for anything else. */
  static parse(text: string): MasterKey | undefined {
    const trimmed = text.trim();
    if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return new MasterKey(Buffer.from(trimmed, "hex"));
    if (!/^([A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?$/.test(trimmed)) return undefined;
    return new MasterKey(Buffer.from(trimmed.replaceAll("-", "+").replaceAll("_", "/"), "base64"));
  }

  wrap(dataKeyId: string, dataKey: Uint8Array): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#keyFor(dataKeyId), nonce).setAAD(Buffer.from(dataKeyId));
    return Buffer.concat([nonce, cipher.update(dataKey), cipher.final(), cipher.getAuthTag()]);
  }

  /** Undefined if it was not wrapped with this key for this id. */
  unwrap(dataKeyId: string, wrapped: Uint8Array): Buffer | undefined {
    if (wrapped.byteLength !== NONCE_BYTES + KEY_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#keyFor(dataKeyId), wrapped.subarray(0, NONCE_BYTES));
    decipher.setAAD(Buffer.from(dataKeyId)).setAuthTag(wrapped.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(wrapped.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  /** Proves possession of this key to someone who has it too, without revealing it. */
  prove(text: string): string {
    const key = Buffer.from(hkdfSync("sha256", this.#bytes, "", "sandboxer proof", KEY_BYTES));
    return createHmac("sha256", key).update(text).digest("base64url");
  }

  /** Verifies the result of {@link prove}. */
  isProved(text: string, proof: string): boolean {
    return isSameSecret(proof, this.prove(text));
  }

  /** For the seals of records only. */
  recordKey(): Uint8Array {
    return Buffer.from(hkdfSync("sha256", this.#bytes, "", "sandboxer records", KEY_BYTES));
  }

  /** For proofs between the servers of a store: needs this key, and what the store has. */
  peerKey(stored: Uint8Array): Uint8Array {
    return Buffer.from(hkdfSync("sha256", this.#bytes, stored, "sandboxer peers", KEY_BYTES));
  }

  /** The key as text. Call it only where the key is used, and do not keep it. */
  reveal(): string {
    return Buffer.from(this.#bytes).toString("base64");
  }

  toString(): string {
    return `[encryption key ${this.fingerprint}]`;
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  #keyFor(dataKeyId: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#bytes, dataKeyId, "sandboxer data key", KEY_BYTES));
  }
}
