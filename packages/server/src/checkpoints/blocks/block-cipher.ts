import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";

const TAG_BYTES = 16;
const NONCE_BYTES = 12;

/**
 * Encrypts stored blocks with AES-256-GCM. Each writer of an image has its own key, derived from the data key and the
 * writer's fresh id, under which each sequence number is used once; so no pair of key and nonce repeats.
 */
export class BlockCipher {
  readonly #dataKey: Uint8Array;
  readonly #keys = new Map<string, Buffer>();

  constructor(dataKey: Uint8Array) {
    this.#dataKey = dataKey;
  }

  /** `associated` is not stored: only a reader with the same text can decrypt. */
  seal(writerId: string, sequence: number, bytes: Uint8Array, associated = ""): Buffer {
    const cipher = createCipheriv("aes-256-gcm", this.#keyOf(writerId), nonceOf(sequence));
    cipher.setAAD(Buffer.from(associated));
    return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** Undefined if the bytes do not decrypt. */
  open(writerId: string, sequence: number, sealed: Uint8Array, associated = ""): Buffer | undefined {
    if (sealed.byteLength < TAG_BYTES) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#keyOf(writerId), nonceOf(sequence));
    decipher.setAAD(Buffer.from(associated)).setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  #keyOf(writerId: string): Buffer {
    let key = this.#keys.get(writerId);
    if (key === undefined) {
      key = Buffer.from(hkdfSync("sha256", this.#dataKey, writerId, "sandboxer blocks", 32));
      this.#keys.set(writerId, key);
    }
    return key;
  }
}

function nonceOf(sequence: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32LE(sequence, 0);
  return nonce;
}
