import type { Encryption } from "@sandboxer/protocol";
import type { MasterKey } from "./keys/master-key.ts";

/** A key that images are encrypted with. */
export interface DataKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** The data keys of a store. Each is encrypted with a key that is not in the store. */
export interface DataKeys {
  /**
   * `key_required` if the client's key is needed, `wrong_key` if another one was given, `key_unavailable` if this
   * server lacks its own; each names the needed key. `image_damaged` if the data key no longer exists.
   */
  open(keyId: string, options?: KeyOptions): Promise<Uint8Array>;
}

/** The keys for opening an image, besides those of the server. */
export interface KeyOptions {
  /** The key of the calling client, for data under a client's key. */
  readonly presentedKey?: MasterKey | undefined;
}

/** The encryption of a new image. */
export interface KeyChoice extends KeyOptions {
  /** Absent or null: the server's own key, if it has one. */
  readonly encryption?: Encryption | null | undefined;
}
