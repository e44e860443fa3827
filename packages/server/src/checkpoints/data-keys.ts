/** A key that images are encrypted with. */
export interface DataKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** The data keys of a store. Each is kept encrypted by a key that is not in the store. */
export interface DataKeys {
  /** Throws `key_unavailable` when this server cannot open it, naming the key that it would need. */
  open(keyId: string): Promise<Uint8Array>;
}
